"""The fleet at a glance, once or again and again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from tidegate.config import Settings
from tidegate.domain.errors import StoreRefused, StoreUnavailable, TidegateError
from tidegate.service.opened import opened
from tidegate.store import Snapshot


def status(settings: Settings) -> Snapshot:
    """Queues, workers and the store, from one instant. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    with opened(settings) as store:
        return store.snapshot()


def watch(
    settings: Settings, interval: float, number: int | None = None
) -> Iterator[Snapshot | TidegateError]:
    """The same every `interval` seconds, `number` times or for ever. While the store does not answer: why not.

    Raises as `status` if the store cannot be opened at the first time.
    """
    with opened(settings) as store:
        for count in itertools.count(1):
            try:
                yield store.snapshot()
            except (StoreUnavailable, StoreRefused) as error:
                yield error
            if count == number:
                return
            time.sleep(interval)
