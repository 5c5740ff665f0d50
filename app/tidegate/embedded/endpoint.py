"""The URL of the fleet's store; starts the embedded server where that is the store."""

from __future__ import annotations

from tidegate import embedded
from tidegate.config import Settings


def broker_url(settings: Settings) -> str:
    """Where the store is now. Safe to call from any number of processes at once; again is cheap.

    Raises EmbeddedError if the embedded server cannot be started.
    """
    if is_embedded(settings):
        return embedded.ensure(settings.data_dir).url
    return settings.broker.url


def is_embedded(settings: Settings) -> bool:
    """True if the store is the bundled server, which any process of the directory may start again."""
    return settings.broker.url == "embedded"
