"""Starts the bundled server again if it died under a running worker; a server that is not ours is only waited for."""

from __future__ import annotations

import logging
import threading

from tidegate.config import Settings
from tidegate.embedded import EmbeddedError
from tidegate.embedded.endpoint import broker_url, is_embedded

logger = logging.getLogger(__name__)

#: seconds of silence before it is looked for, and between two looks
AFTER, EVERY = 1.0, 2.0


class Reviver:
    """In a thread of its own, because a start may take seconds, in which heartbeats must be tried."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._thread: threading.Thread | None = None
        self._next = 0.0

    def look(self, now: float, good: bool) -> None:
        """Call it again and again with monotonic seconds, and whether the last heartbeat was answered."""
        if good or not is_embedded(self._settings):
            self._next = now + AFTER
        elif now >= self._next and (self._thread is None or not self._thread.is_alive()):
            self._next = now + EVERY
            self._thread = threading.Thread(target=self._start, name="tidegate-revive", daemon=True)
            self._thread.start()

    def _start(self) -> None:
        try:
            broker_url(self._settings)
        except EmbeddedError as error:
            logger.error("the embedded server cannot be started again: %s", error)
