"""The thread of a worker's main process that keeps its leases honest: beats, flushes, reaps, drains, looks around.

It has a line to the store of its own, so neither a busy main loop nor a blocked connection starves it. If it
stops all the same (a frozen process, a C call that holds the interpreter lock), guard and watchdog notice the
silence and end the bodies.
"""

from __future__ import annotations

import logging
import threading
import time

from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.store import Store
from tidegate.worker.bodies import Bodies, leave
from tidegate.worker.drain import Drain
from tidegate.worker.flush import Flusher
from tidegate.worker.heartbeat import Heartbeat
from tidegate.worker.kennel import Kennel
from tidegate.worker.lease_table import LeaseTable
from tidegate.worker.revive import Reviver
from tidegate.worker.stamp import MODE_MAIN, Stamp, boottime_ns

logger = logging.getLogger(__name__)

_TICK = 0.025  # seconds between two looks: a drain begins within that
_PULSE = 1.0  # seconds between two reaps: STORE §2 calls a gap over 2 s an outage
_RETRY = 0.25  # seconds to the next heartbeat after a failed one


class Keeper:
    """One per worker. `start()` after the pool has forked, `stop()` when no body runs any more."""

    def __init__(
        self,
        store: Store,
        table: LeaseTable,
        heartbeat: Heartbeat,
        flusher: Flusher,
        bodies: Bodies,
        drain: Drain,
        kennel: Kennel,
        reviver: Reviver,
        stamp: Stamp,
        every: float,
    ) -> None:
        self._store = store
        self._table = table
        self._heartbeat = heartbeat
        self._flusher = flusher
        self._bodies = bodies
        self._drain = drain
        self._kennel = kennel
        self._reviver = reviver
        self._stamp = stamp
        self._every = every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_beat = self._next_pulse = self._next_look = 0.0
        self._kills = 0
        self.surprises = 0  #: rounds that ended with an error nobody expected

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tidegate-keeper", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """End the thread, then report what is left within `timeout` seconds. False if something remains unreported."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        deadline = time.monotonic() + timeout
        while self._table.unreported() and not self._flusher.flush():
            if time.monotonic() >= deadline:
                return False
            self._heartbeat.beat()
            time.sleep(_TICK)
        return True

    def hurry(self) -> None:
        """Beat at once (the store asked for a reassertion, or does not know us). Any thread may call it."""
        self._next_beat = 0.0

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._round(time.monotonic())
            except Exception:  # whatever it is, the next heartbeat must be tried
                self.surprises += 1
                logger.exception("the keeper of the leases goes on after an error")
                self._stop.wait(_RETRY)

    def _round(self, now: float) -> None:
        if self._stamp.mode == MODE_MAIN and self._stamp.silent(boottime_ns()):
            leave("the store has not confirmed their leases for too long")
        if self._table.draining:
            self._drain.step(now)
        if now >= self._next_beat:
            self._beat(now)
        if self._heartbeat.good:
            if self._flusher.due(now) and not self._flusher.flush():
                self._next_beat = 0.0
            if now >= self._next_pulse:
                self._next_pulse = now + _PULSE
                self._pulse()
        self._reviver.look(now, self._heartbeat.good)
        if now >= self._next_look:
            self._next_look = now + _PULSE
            self._look_around()
        if self._table.unreported():
            self._stop.wait(_TICK)
        else:
            self._table.wait_for_outcome(_TICK)

    def _beat(self, now: float) -> None:
        self._next_beat = now + self._every  # before the beat: hurry() during it is not lost
        if not self._heartbeat.beat():
            self._next_beat = time.monotonic() + min(_RETRY, self._every / 2)

    def _pulse(self) -> None:
        try:
            self._store.reap()
            self._store.promote()
        except (StoreUnavailable, StoreRefused):
            self._next_beat = 0.0  # the next heartbeat finds out and says so

    def _look_around(self) -> None:
        self._kennel.look()
        self._bodies.look_again()
        kills, _ = self._stamp.fenced()
        if kills != self._kills:
            self._kills = kills
            logger.error("the watchdog killed bodies of this worker: it had been silent for too long")
