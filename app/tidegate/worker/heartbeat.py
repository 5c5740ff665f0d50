"""One heartbeat: extend all leases in one call, drop what is lost, and after a restart of the store reassert.

Measured from the *send* time: the store extends a lease when it handles the request, never before it was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.domain.job import LeaseRef
from tidegate.store import ExtendReply, Store
from tidegate.worker.bodies import Bodies
from tidegate.worker.lease_table import LeaseTable
from tidegate.worker.stamp import boottime_ns

logger = logging.getLogger(__name__)


def _nothing() -> None:
    """Nobody wants to know."""


@dataclass(slots=True)
class BeatCounters:
    """What happened in this process since it started; for logs and `stats`."""

    good: int = 0
    failed: int = 0
    lost: int = 0  #: leases that the store said are not ours
    reasserted: int = 0  #: times this worker told a restarted store what it holds
    registered: int = 0


class Heartbeat:
    """Not thread-safe: one thread beats."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        table: LeaseTable,
        bodies: Bodies,
        announce: Callable[[], None],
        on_known: Callable[[], None] = _nothing,
    ) -> None:
        """announce: registers the worker; raises StoreUnavailable or StoreRefused. on_known: the store knows it."""
        self._store = store
        self._worker_id = worker_id
        self._table = table
        self._bodies = bodies
        self._announce = announce
        self._on_known = on_known
        self.counters = BeatCounters()
        #: False while the store does not answer; flushing and reaping wait until it does
        self.good = True
        self._silent_since = 0

    def beat(self) -> bool:
        """Extend everything. False if the store did not answer in time: beat again soon."""
        try:
            self._extend()
        except (StoreUnavailable, StoreRefused) as error:
            self._failed(error)
            return False
        self._succeeded()
        return True

    def register(self) -> bool:
        """Make this worker known. False if the store did not answer."""
        try:
            self._announce()
        except (StoreUnavailable, StoreRefused) as error:
            self._failed(error)
            return False
        self.counters.registered += 1
        return True

    def _extend(self) -> None:
        reply, sent_ns, asked = self._ask()
        if reply.held and not reply.known:  # the store restarted and waits for what we remember
            self._reassert()
            reply, sent_ns, asked = self._ask()
        if not reply.known:  # it forgot us, or took us for dead after a long silence
            if not self.register():
                return
            reply, sent_ns, asked = self._ask()
        lost = set(reply.lost)
        if lost:
            self.counters.lost += len(lost)
            self._bodies.kill(self._table.drop(lost), "the store gave the lease to somebody else")
        if reply.known:
            self._on_known()
            self._table.confirm((ref for ref in asked if ref not in lost), sent_ns)

    def _ask(self) -> tuple[ExtendReply, int, tuple[LeaseRef, ...]]:
        asked = tuple(job.ref for job in self._table.live())
        sent_ns = boottime_ns()
        return self._store.extend(self._worker_id, asked), sent_ns, asked

    def _reassert(self) -> None:
        leases, outcomes = self._table.live(), self._table.recent()
        self._store.reassert(self._worker_id, leases, outcomes)
        self.counters.reasserted += 1
        logger.warning(
            "the store restarted: reasserted %d leases and %d outcomes", len(leases), len(outcomes)
        )

    def _failed(self, error: Exception) -> None:
        self.counters.failed += 1
        if self.good:
            self.good = False
            self._silent_since = boottime_ns()
            logger.warning("the store does not answer, running jobs may go on for a while: %s", error)

    def _succeeded(self) -> None:
        self.counters.good += 1
        if not self.good:
            self.good = True
            silence = (boottime_ns() - self._silent_since) / 1e9
            logger.warning("the store answers again after %.1f s", silence)
