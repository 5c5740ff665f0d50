"""The fleet at a glance."""

from __future__ import annotations

from tidegate.config import Settings
from tidegate.service.opened import opened
from tidegate.store import Snapshot


def status(settings: Settings) -> Snapshot:
    """Queues, workers and the store, from one instant. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    with opened(settings) as store:
        return store.snapshot()
