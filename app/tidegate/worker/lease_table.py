"""The leases one worker process holds, and the one place where an attempt ends.

Leases belong to the process, not to a channel or a connection: a reconnect loses none of them. Several
threads meet here: the main loop (claims, hands to the pool, ends), the heartbeat thread (extends, flushes,
drains) and, in the threads pool, those that run bodies. Every method is short, does no I/O, holds one lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tidegate.domain.job import ClaimedJob, LeaseRef, Outcome, OutcomeKind, Settled, SettleWord
from tidegate.domain.states import Reason
from tidegate.worker.stamp import boottime_ns
from tidegate.worker.tenure import Tenure

#: seconds for which accepted outcomes are remembered, to tell a server that lost its last one (STORE §2)
RECENT_SECONDS = 5.0


@dataclass(slots=True)
class _Lease:
    job: ClaimedJob
    handed: bool = False
    ended: bool = False
    sentence: Outcome | None = None  # what a violent end of the body means (see condemn)


@dataclass(slots=True)
class TableCounters:
    """What happened in this process since it started; for logs and `stats`."""

    claimed: int = 0
    accepted: int = 0
    stale: int = 0
    dropped: int = 0
    late: int = 0  #: a second report about one attempt: ignored here, never sent
    too_old: int = 0  #: given back at the gate: the store had not confirmed the lease for too long


class LeaseTable:
    """All leases of one worker main process. Thread-safe, no I/O.

    The life of an entry: register -> hand (or release) -> end -> take_outcomes -> settled (or put_back).
    `clock` gives monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._leases: dict[LeaseRef, _Lease] = {}  # in order of registration
        self._open = 0  # registered, not ended: each one occupies a slot
        self._lost: set[LeaseRef] = set()  # bodies that run on although the lease is gone: a slot each
        self._pending: deque[tuple[float, Outcome]] = deque()
        self._flying: dict[LeaseRef, float] = {}  # taken, not yet answered -> when the attempt ended
        self._recent: deque[tuple[float, Settled]] = deque()
        self.counters = TableCounters()
        #: set by the drain: nothing starts any more, whatever arrives is given back
        self.draining = False
        #: set by the claim connection while it waits for a wake: nothing rides until then, so flush at once
        self.parked = False
        #: how long each lease is known to be good, published to children and watchdog (None: nobody watches)
        self.tenure: Tenure | None = None

    # --- the way in

    def register(self, jobs: Iterable[ClaimedJob], sent_ns: int | None = None) -> None:
        """Take in all leases of one claim, before the first of them is delivered.

        sent_ns: `stamp.boottime_ns()` when the claim was *first* sent (not its replay): leases count from there.
        While draining they are given back at once. A lease that is here already (a replayed reply) stays.
        """
        sent_ns = boottime_ns() if sent_ns is None else sent_ns
        with self._lock:
            fresh = [job for job in jobs if job.ref not in self._leases and job.ref not in self._lost]
            for job in fresh:
                self._leases[job.ref] = _Lease(job)
            if self.tenure is not None:
                self.tenure.granted((job.ref for job in fresh), sent_ns)
            self._open += len(fresh)
            self.counters.claimed += len(fresh)
            if self.draining:
                self._release_unstarted()

    def startable(self, ref: LeaseRef) -> bool:
        """True if `hand(ref)` would say yes now. For those who must not take the turn themselves."""
        with self._lock:
            return self._startable(ref) is not None

    def hand(self, ref: LeaseRef) -> bool:
        """The gate in front of the body: True exactly once, and never after a release, a fence or an end.

        A lease that the store has not confirmed for too long is given back here instead (the fence makes that
        harmless if it is another's already).
        """
        with self._lock:
            lease = self._startable(ref)
            if lease is None:
                return False
            if self.tenure is not None and not self.tenure.start(ref):
                self.counters.too_old += 1
                self._end(Outcome(ref, OutcomeKind.RELEASE))
                return False
            lease.handed = True
            return True

    def _startable(self, ref: LeaseRef) -> _Lease | None:
        lease = self._leases.get(ref)
        if lease is None or lease.handed or lease.ended or self.draining:
            return None
        return lease

    # --- the way out

    def end(self, outcome: Outcome) -> bool:
        """THE one place where an attempt ends. The first call wins.

        False says that somebody was faster or that the lease is gone.
        """
        with self._lock:
            if outcome.ref in self._lost:
                self._lost.discard(outcome.ref)  # the body of a lost lease is over at last: its slot is free
                return False
            return self._end(outcome)

    def _end(self, outcome: Outcome) -> bool:
        lease = self._leases.get(outcome.ref)
        if lease is None or lease.ended:
            self.counters.late += 1
            return False
        lease.ended = True
        self._open -= 1
        if lease.sentence is not None and _is_violent(outcome):
            outcome = lease.sentence
        if self.tenure is not None:
            self.tenure.over(outcome.ref)
        self._pending.append((self._clock(), outcome))
        if (
            self.parked or self.draining
        ):  # else it rides on the next claim: waking a thread each time costs more
            self._changed.notify_all()
        return True

    def condemn(self, outcome: Outcome) -> bool:
        """The body of this attempt is about to be killed: if the kill ends it, `outcome` is the report.

        A body that finishes by itself first keeps its own end. False if the attempt has ended already.
        """
        with self._lock:
            lease = self._leases.get(outcome.ref)
            if lease is None or lease.ended:
                return False
            lease.sentence = outcome
            return True

    def confirm(self, refs: Iterable[LeaseRef], sent_ns: int) -> None:
        """The store extended these leases; the request was sent at `sent_ns` (`stamp.boottime_ns()`)."""
        if self.tenure is not None:
            with self._lock:
                self.tenure.confirmed(refs, sent_ns)

    def take_outcomes(self, limit: int = 32) -> tuple[Outcome, ...]:
        """Move up to `limit` ended attempts into flight, oldest first; then `settled` or `put_back`."""
        with self._lock:
            batch = [self._pending.popleft() for _ in range(min(limit, len(self._pending)))]
            for ended_at, outcome in batch:
                self._flying[outcome.ref] = ended_at
            return tuple(outcome for _, outcome in batch)

    def settled(self, batch: Sequence[Outcome], words: Sequence[SettleWord]) -> None:
        """The store answered: these leases are gone. Accepted ones are remembered to reassert them.

        Those that the store holds back (it restarted and this worker has not reasserted yet) are sent again.
        """
        with self._lock:
            now = self._clock()
            again = []
            for outcome, word in zip(batch, words, strict=True):
                if word is SettleWord.HELD:
                    again.append(outcome)
                    continue
                lease = self._leases.pop(outcome.ref, None)
                self._flying.pop(outcome.ref, None)
                if word is SettleWord.STALE:
                    self.counters.stale += 1
                    continue
                self.counters.accepted += 1
                if lease is not None:
                    self._recent.append((now, Settled(lease.job.head, outcome)))
            self._put_back(again, now)
            self._forget_old(now)

    def put_back(self, batch: Sequence[Outcome]) -> None:
        """The reply was lost or the store said "not now": send them again, in the same order.

        The fence makes a repeat harmless.
        """
        with self._lock:
            self._put_back(batch, self._clock())

    def _put_back(self, batch: Sequence[Outcome], now: float) -> None:
        for outcome in reversed(batch):
            self._pending.appendleft((self._flying.pop(outcome.ref, now), outcome))
        if batch:
            self._changed.notify_all()

    def release_unstarted(self) -> int:
        """Give back every lease not yet handed to the pool, newest first: the oldest ends up in front."""
        with self._lock:
            return self._release_unstarted()

    def _release_unstarted(self) -> int:
        waiting = [ref for ref, lease in self._leases.items() if not lease.handed and not lease.ended]
        for ref in reversed(waiting):
            self._end(Outcome(ref, OutcomeKind.RELEASE))
        return len(waiting)

    def drop(self, refs: Iterable[LeaseRef]) -> tuple[ClaimedJob, ...]:
        """The store says these leases are no longer ours. Returns the jobs whose bodies must be killed.

        An attempt that has ended already is left alone: its report is on the way and may be the very reason.
        """
        doomed = []
        with self._lock:
            for ref in refs:
                lease = self._leases.get(ref)
                if lease is None or lease.ended:
                    continue
                del self._leases[ref]
                self._open -= 1
                self.counters.dropped += 1
                if self.tenure is not None:
                    self.tenure.over(ref)
                if lease.handed:
                    self._lost.add(ref)
                    doomed.append(lease.job)
        return tuple(doomed)

    # --- views

    def live(self) -> tuple[ClaimedJob, ...]:
        """Every lease the store has not yet taken back: to extend and to reassert."""
        with self._lock:
            return tuple(lease.job for lease in self._leases.values())

    def running(self) -> tuple[ClaimedJob, ...]:
        """Handed to the pool and not ended."""
        with self._lock:
            return tuple(lease.job for lease in self._leases.values() if lease.handed and not lease.ended)

    def get(self, ref: LeaseRef) -> ClaimedJob | None:
        """The job of a lease that the store has not yet taken back."""
        with self._lock:
            lease = self._leases.get(ref)
            return lease.job if lease else None

    def unfinished(self, ref: LeaseRef) -> bool:
        """True for a lease of ours whose attempt has not ended."""
        with self._lock:
            lease = self._leases.get(ref)
            return lease is not None and not lease.ended

    def recent(self) -> tuple[Settled, ...]:
        """What the store accepted in the last five seconds: to reassert."""
        with self._lock:
            self._forget_old(self._clock())
            return tuple(settled for _, settled in self._recent)

    def free_slots(self, total: int) -> int:
        """How many more jobs fit, if `total` may be held at once; never negative, 0 while draining."""
        if self.draining:
            return 0
        return max(0, total - self._open - len(self._lost))

    @property
    def open(self) -> int:
        """Leases whose attempt has not ended, and bodies of lost leases that still run."""
        return self._open + len(self._lost)

    def unreported(self) -> int:
        """Ended attempts that wait to be sent (those in flight not counted)."""
        return len(self._pending)

    def wait_for_outcome(self, timeout: float) -> bool:
        """Block up to `timeout` seconds until an ended attempt waits to be sent."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._pending), timeout)

    def oldest_outcome_age(self, now: float) -> float:
        """Seconds that the first unsent outcome has waited (monotonic `now`); 0 if none waits."""
        with self._lock:
            return max(0.0, now - self._pending[0][0]) if self._pending else 0.0

    def _forget_old(self, now: float) -> None:
        while self._recent and self._recent[0][0] <= now - RECENT_SECONDS:
            self._recent.popleft()


def _is_violent(outcome: Outcome) -> bool:
    """True for the ends that killing a body brings about."""
    if outcome.kind in (OutcomeKind.RELEASE, OutcomeKind.CANCELLED):
        return True
    return outcome.reason in (Reason.WORKER_LOST, Reason.TERMINATED)
