"""Reports that no claim takes along: sent aside once they have waited long enough.

As a rule the end of an attempt rides on the worker's next claim. While the claim connection is parked, or full of
work, or the worker stops, nothing rides; a result must not wait for that.
"""

from __future__ import annotations

from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.domain.job import Outcome, SettleWord
from tidegate.store import Store
from tidegate.worker.lease_table import LeaseTable

#: seconds that a report waits for a claim to ride on (STORE §2)
RIDE_WAIT = 0.2

_BATCH = 32  # what one settle takes


class Flusher:
    """Not thread-safe: one thread flushes."""

    def __init__(self, store: Store, worker_id: str, table: LeaseTable) -> None:
        self._store = store
        self._worker_id = worker_id
        self._table = table
        self.flushed = 0
        #: the store restarted and wants this worker to reassert before it takes reports
        self.held_back = False

    def due(self, now: float) -> bool:
        """True if a report should go out now. `now`: monotonic seconds."""
        table = self._table
        if not table.unreported():
            return False
        return table.parked or table.draining or table.oldest_outcome_age(now) >= RIDE_WAIT

    def flush(self) -> bool:
        """Send what waits. False if the store did not answer or holds reports back; they wait on."""
        self.held_back = False
        while batch := self._table.take_outcomes(_BATCH):
            if not self._send(batch):
                return False
        return True

    def _send(self, batch: tuple[Outcome, ...]) -> bool:
        try:
            words = self._store.settle(batch, self._worker_id)
        except (StoreUnavailable, StoreRefused):
            self._table.put_back(batch)
            return False
        self._table.settled(batch, words)
        self.flushed += len(batch)
        self.held_back = SettleWord.HELD in words
        return not self.held_back
