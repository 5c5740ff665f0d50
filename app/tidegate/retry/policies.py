"""Retry policies of tasks by their names: the file, over what the code of the workers says, over the defaults."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

from tidegate.config import Settings, TaskSettings
from tidegate.config.reader import Reading
from tidegate.domain.backoff import RetryPolicy
from tidegate.retry.policy import retry_policy
from tidegate.store import Store

log = logging.getLogger(__name__)

#: seconds between two questions whether workers say something else by now
FRESH = 1.0


class Policies:
    """Asked by the authority, which has no code of the user's. Not thread-safe."""

    def __init__(
        self, store: Store, settings: Settings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._settings, self._monotonic = store, settings, monotonic
        self._version, self._asked = "-", float("-inf")
        self._said: dict[str, TaskSettings] = {}
        self._made: dict[str, RetryPolicy] = {}

    def __call__(self, task: str) -> RetryPolicy:
        """The policy of a task. Raises StoreUnavailable, StoreRefused."""
        self._refresh()
        found = self._made.get(task)
        if found is None:
            whole = self._settings.task(task).over(self._said.get(task, TaskSettings()))
            found = self._made[task] = retry_policy(whole)
        return found

    def _refresh(self) -> None:
        now = self._monotonic()
        if now - self._asked < FRESH:
            return
        version, rows = self._store.policies(self._version)
        self._asked = now
        if version != self._version or len(self._made) > 10_000:
            self._made.clear()
        if version != self._version:
            self._said = {name: said for name, text in rows.items() if (said := _parsed(name, text))}
            self._version = version


def _parsed(name: str, text: str) -> TaskSettings | None:
    """What a worker wrote; None for what this release cannot read, which another one may have written."""
    reading = Reading(TaskSettings)
    try:
        said = reading.build(TaskSettings, json.loads(text))
    except ValueError as error:
        log.warning("what the workers say about task %s cannot be read: %s", name, error)
        return None
    if reading.faults:
        faults = "; ".join(map(str, reading.faults))
        log.warning("what the workers say about task %s is not all understood: %s", name, faults)
        return None
    return said
