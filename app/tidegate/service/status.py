"""The fleet at a glance."""

from __future__ import annotations

from tidegate.config import Settings
from tidegate.embedded.endpoint import broker_url
from tidegate.store import Snapshot, Store


def status(settings: Settings) -> Snapshot:
    """Queues, workers and the store, from one instant. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    store = Store.open(settings, "tool", url=broker_url(settings))
    try:
        return store.snapshot()
    finally:
        store.close()
