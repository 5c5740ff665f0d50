"""Time limits of the prefork pool, without a timer for each job.

Celery sets a timer when a child accepts a job that has a time limit, and every job of ours has one. A cancelled timer
stays in the event loop's heap until its time comes, ten minutes as a rule: a worker with a thousand jobs a second
would carry half a million of them. Here a body gets its timer only after half a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: seconds after which a running body gets its timer; a shorter limit gets it at once
SOON = 0.5


class TimeLimits:
    """Stands between the pool and its timers. Main loop only. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._young: dict[int, tuple[float, Any, float | None, float | None]] = {}  # in order of their start
        self._set: Callable[..., None] = _nothing
        self._cancel: Callable[..., None] = _nothing
        self._looks = False

    def attach(self, pool: Any, hub: Any) -> None:
        """Take over the handlers that the pool has just made; again after each of its registrations."""
        self._set, self._cancel = pool.on_timeout_set, pool.on_timeout_cancel
        pool.on_timeout_set, pool.on_timeout_cancel = self.set, self.cancel
        if not self._looks:
            hub.call_repeatedly(SOON / 2, self.look)
            self._looks = True

    def set(self, result: Any, soft: float | None, hard: float | None) -> None:
        """A child has accepted a job. soft, hard: its limits in seconds, 0 or None for none."""
        limits = [limit for limit in (soft, hard) if limit]
        if not limits:
            return
        if min(limits) <= 2 * SOON:
            self._set(result, soft, hard)
        else:
            self._young[result._job] = (self._clock(), result, soft, hard)

    def cancel(self, result: Any) -> None:
        """The job has ended."""
        if self._young.pop(result._job, None) is None:
            self._cancel(result)

    def look(self) -> None:
        """Give their timers to those that have run for a while."""
        now = self._clock()
        for job, (start, result, soft, hard) in list(self._young.items()):
            gone = now - start
            if gone < SOON:
                return
            del self._young[job]
            self._set(result, soft and soft - gone, hard and hard - gone)


def _nothing(*_: Any) -> None:
    """No pool yet."""
