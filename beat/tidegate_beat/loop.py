"""One duty of the beat process in a thread of its own: a slow one delays no other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tidegate.domain.errors import StoreRefused, StoreUnavailable

log = logging.getLogger(__name__)

#: seconds to leave a store alone that does not answer: doubled up to the second figure
BACKOFF = (0.5, 5.0)


class Loop:
    """Calls `step` every `period` seconds, and again at once while it says that there is more.

    rest: seconds to sleep after a step, for a duty that knows when it has something to do; else it follows the period.
    """

    def __init__(
        self, name: str, step: Callable[[], bool], period: float, rest: Callable[[], float] | None = None
    ) -> None:
        self.name = name
        self._step, self._period, self._rest = step, period, rest
        self._stop = threading.Event()
        self._failed = 0
        self._thread = threading.Thread(target=self._run, name=f"tidegate-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """Ask it to end and wait for it (seconds). True if it has."""
        self._stop.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            begin = time.monotonic()
            more = self._once()
            if self._failed:
                least, most = BACKOFF
                self._stop.wait(min(most, least * 2 ** (self._failed - 1)))
            elif not more:
                period = max(0.0, self._period - (time.monotonic() - begin))
                self._stop.wait(min(period, self._rest()) if self._rest else period)

    def _once(self) -> bool:
        try:
            more = self._step()
        except (StoreUnavailable, StoreRefused) as error:
            self._failed = min(self._failed + 1, 16)
            if self._failed == 1:
                log.warning("%s: %s; trying again until it answers", self.name, error)
            return False
        except Exception:
            self._failed = min(self._failed + 1, 16)
            log.exception("%s: an error that nobody expected; trying again", self.name)
            return False
        if self._failed:
            log.info("%s: the store answers again", self.name)
        self._failed = 0
        return more
