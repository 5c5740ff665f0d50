"""What is said about a task: the file, then its decorator, then how Celery acknowledges it (DESIGN §11).

Celery's own `time_limit` and `expires` need no reading here: Celery puts them into the message, where they count
unless the file or the decorator says otherwise (`overruled`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from tidegate.config import ConfigError, Settings, TaskSettings
from tidegate.config.reader import Reading
from tidegate.config.task import RetryPolicySettings
from tidegate.config.writer import as_mapping
from tidegate.domain.backoff import Backoff, Jitter
from tidegate.domain.job import Effect

#: where install() keeps the word of a task that says `acks_late=False` itself, before it forces late acknowledgement
ACKS_EARLY = "_tidegate_acks_early"

#: retries without end, as far as a policy goes
_ENDLESS = 10_000
_OPTIONS = frozenset(
    {
        "max_retries",
        "default_retry_delay",
        "retry_backoff",
        "retry_backoff_max",
        "retry_jitter",
        "retry_kwargs",
    }
)
_EARLY = TaskSettings(effect=Effect.AT_MOST_ONCE)


def policy(settings: Settings, name: str, task: Any = None) -> TaskSettings:
    """What is said about the task; None where nothing is (the defaults are `DEFAULT_TASK`).

    task: its Celery task object, if this process has it. Raises ConfigError for wrong options in the decorator.
    """
    said = settings.task(name)
    return said if task is None else said.over(own(name, task))


def own(name: str, task: Any) -> TaskSettings:
    """What the code itself says: the decorator, then Celery's options. Raises ConfigError for a wrong decorator."""
    celery = TaskSettings(retry=celery_retry(task))
    if getattr(task, ACKS_EARLY, False):
        celery = _EARLY.over(celery)
    decorator = getattr(task, "tidegate", None)
    return _decorated(name, json.dumps(decorator, default=str)).over(celery) if decorator else celery


def own_texts(tasks: Mapping[str, Any]) -> dict[str, str]:
    """The same of several tasks, as JSON for the store; empty where nothing is said. Celery's own and ours: left out.

    A decorator that is wrong says nothing here: its task cannot be sent either, and that names the fault.
    """
    found = {}
    for name, task in tasks.items():
        if name.startswith(("celery.", "tidegate.")):
            continue
        try:
            said = as_mapping(own(name, task))
        except ConfigError:
            said = {}
        kept = {key: value for key, value in said.items() if value != {}}
        found[name] = json.dumps(kept, sort_keys=True) if kept else ""
    return found


def celery_retry(task: Any) -> RetryPolicySettings:
    """Celery's own retry options, where the task says them: `max_retries`, `default_retry_delay`, `retry_backoff`, …"""
    said = _said(task)
    told: dict[str, Any] = {}
    kwargs = said.get("retry_kwargs") or {}
    if "max_retries" in kwargs or "max_retries" in said:
        most = kwargs.get("max_retries", said.get("max_retries"))
        if most is None or (most := _number(most)) is not None:
            told["max_retries"] = _ENDLESS if most is None else int(min(_ENDLESS, max(0, most)))
    if backoff := _number(said.get("retry_backoff")):  # True counts as one second, as in Celery
        base = max(0.001, backoff)
        cap = max(base, _number(said.get("retry_backoff_max")) or 600.0)
        jitter = Jitter.FULL if said.get("retry_jitter", True) else Jitter.NONE
        told |= {"kind": Backoff.EXPONENTIAL, "base": base, "cap": cap, "jitter": jitter}
    elif (delay := _number(said.get("default_retry_delay"))) is not None:
        told |= {"kind": Backoff.FIXED, "interval": max(0.001, delay), "jitter": Jitter.NONE}
    return RetryPolicySettings(**told)


def _number(value: Any) -> float | None:
    """A finite number; None for anything else, which Celery itself would stumble over when it comes to a retry."""
    return min(float(value), 1e9) if isinstance(value, int | float) and isfinite(value) else None


def _said(task: Any) -> dict[str, Any]:
    """Options that the task or one of its base classes says; Celery's defaults are nobody's word."""
    found: dict[str, Any] = {}
    for cls in type(task).__mro__:
        if cls.__module__.startswith("celery."):
            break
        for name in _OPTIONS & cls.__dict__.keys():
            found.setdefault(name, cls.__dict__[name])
    return found


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
