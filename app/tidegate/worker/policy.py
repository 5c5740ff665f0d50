"""What is said about a task: the file, then its decorator, then how Celery acknowledges it (DESIGN §11).

Celery's own `time_limit` and `expires` need no reading here: Celery puts them into the message, where they count
unless the file or the decorator says otherwise (`overruled`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from tidegate.config import ConfigError, Settings, TaskSettings
from tidegate.config.reader import Reading
from tidegate.domain.job import Effect

#: where install() keeps the word of a task that says `acks_late=False` itself, before it forces late acknowledgement
ACKS_EARLY = "_tidegate_acks_early"

_EARLY = TaskSettings(effect=Effect.AT_MOST_ONCE)


def policy(settings: Settings, name: str, task: Any = None) -> TaskSettings:
    """What is said about the task; None where nothing is (the defaults are `DEFAULT_TASK`).

    task: its Celery task object, if this process has it. Raises ConfigError for wrong options in the decorator.
    """
    said = settings.task(name)
    if task is None:
        return said
    if decorator := getattr(task, "tidegate", None):
        said = said.over(_decorated(name, json.dumps(decorator, default=str)))
    return said.over(_EARLY) if getattr(task, ACKS_EARLY, False) else said


def overruled(said: TaskSettings, task: Any, options: Mapping[str, Any]) -> dict[str, None]:
    """Those of the task's own Celery options among a call's `options` that the file or the decorator overrules.

    Celery has merged them into the call by now; a value that differs from the task's own is the caller's, and stays.
    """
    found: dict[str, None] = {}
    for name, better in (("time_limit", said.timeouts.attempt), ("expires", said.timeouts.queue)):
        own = getattr(task, name, None)
        if better is not None and own is not None and options.get(name) == own:
            found[name] = None
    return found


@functools.lru_cache(maxsize=10_000)
def _decorated(name: str, options: str) -> TaskSettings:
    reading = Reading(TaskSettings)
    said = reading.build(TaskSettings, json.loads(options), ("tasks", name))
    if reading.faults:
        raise ConfigError(f"the decorator of task {name!r}", tuple(reading.faults))
    return said
