"""A polite stop: give back at once what has not started, let the rest finish for a while, then kill and hand back.

Celery's own handlers go on doing what they do; ours run first. A handler only sets flags, because it may
interrupt the main thread anywhere, also while it holds a lock.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from tidegate.domain.job import ClaimedJob
from tidegate.worker.bodies import Bodies
from tidegate.worker.handback import hand_back
from tidegate.worker.lease_table import LeaseTable

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


class Drain:
    """`begin` may be called anywhere, also in a signal handler; `step` belongs to the keeper's thread.

    timeout: seconds that running bodies get. replace: ends this process and hands back the given attempts, for
    pools whose bodies cannot be killed (handback.py); it does not return.
    """

    def __init__(
        self,
        table: LeaseTable,
        bodies: Bodies,
        timeout: float,
        replace: Callable[[tuple[ClaimedJob, ...]], None],
    ) -> None:
        self._table = table
        self._bodies = bodies
        self._timeout = timeout
        self._replace = replace
        self._began = 0.0
        self._released = False

    def install(self) -> None:
        """Wrap the handlers that are installed now. In a thread other than the main one there is nothing to wrap."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if callable(previous):
                signal.signal(number, self._wrapped(previous))

    def _wrapped(self, previous: Callable[[int, FrameType | None], Any]) -> Callable[..., Any]:
        worker = os.getpid()

        def handler(number: int, frame: FrameType | None) -> Any:
            if os.getpid() == worker:  # a forked child inherits the handler
                self.begin()
            return previous(number, frame)

        return handler

    def begin(self) -> None:
        """From now on nothing starts, and whatever arrives goes back. Takes no lock."""
        if not self._table.draining:
            self._began = time.monotonic()
            self._table.draining = True

    def step(self, now: float) -> None:
        """What is due at monotonic `now`. Call it again and again while `table.draining`."""
        if not self._released:
            self._released = True
            self._began = self._began or now  # Celery's consumer may have begun without a signal
            count = self._table.release_unstarted()
            logger.info("stopping: %d jobs given back, %d running", count, len(self._table.running()))
        if now - self._began >= self._timeout:
            self._kill()

    def _kill(self) -> None:
        running = self._table.running()
        if not running:
            return
        if not self._bodies.separate:
            logger.warning("stopping: %d jobs did not finish in %g s", len(running), self._timeout)
            self._replace(running)
        sentenced = [job for job in running if self._table.condemn(hand_back(job))]
        self._bodies.kill(sentenced, f"the worker stops and {self._timeout:g} s are over")
