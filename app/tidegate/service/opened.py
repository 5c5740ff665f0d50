"""The store of a fleet for one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidegate.config import Settings
from tidegate.embedded.endpoint import broker_url
from tidegate.store import Store


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    """Connected, and closed afterwards. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    store = Store.open(settings, "tool", url=broker_url(settings))
    try:
        yield store
    finally:
        store.close()
