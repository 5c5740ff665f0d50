"""The store in plain Python: what enqueue, claim, settle, extend, reap, promote and configure of this release mean.

A specification to compare with, not code to ship: no servers, no bytes, no lost replies. One process, one clock, which
is an argument. Names are taken to be encoded already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.domain.verdict import Closed, Full

from .door import SPACE, Door
from .job import Job, Z
from .limit import TOKEN, Limit
from .place import CREDIT

GUESS = 0.01  #: slot-seconds of a tenant of whom nothing is known
LEAD = 60.0  #: slot-seconds that a tenant may be ahead of the others because of idle capacity
PULSE, GAP = 250, 2000  #: ms: how often a claim keeps the house; what counts as an outage
LOST_REPLIES = 2  #: leases never heard of that are not charged


@dataclass(slots=True)
class Claim:
    """Answer to a claim. jobs: (job id, fence, attempt)."""

    words: list[str]
    jobs: list[tuple[str, int, int]] = field(default_factory=list)
    more: bool = False
    known: bool = True


class Model(Door):
    """`now` is moved by whoever drives it."""

    def __init__(
        self, epoch: int, now: int, lease: int, limits: dict[str, Limit], history_ms: int = 3_600_000
    ) -> None:
        super().__init__(epoch, now, limits, history_ms)
        self.lease = lease
        self.pulse = self.judge = now
        self.fences = self.stale = self.lost_leases = 0
        self.leases, self.failed, self.dead = Z(), Z(), Z()
        self.queue_passes: dict[str, float] = {}
        self.workers: dict[str, int] = {}

    # -- claim

    def claim(
        self, worker: str, queues: Sequence[str], slots: int, outcomes: Sequence[tuple[str, str, str]] = ()
    ) -> Claim:
        answer = Claim(
            [self.settle(lease, kind, reason) for lease, kind, reason in outcomes],
            known=worker in self.workers,
        )
        if self.now - self.pulse >= PULSE:
            self.reap(8)
            self.promote(32)
        self.ring(16)
        left = 4 * slots + 32 if answer.known else 0
        skip: set[str] = set()
        while len(answer.jobs) < slots and left > 0:
            q = self._next_queue(queues, skip)
            if q is None:
                break
            left -= 1
            job = self._examine(q, skip)
            if job is None:
                continue
            answer.jobs.append((job.id, job.fence, job.n))
            if len(queues) > 1:
                self._charge_queue(q)
        if answer.known and len(answer.jobs) < slots:
            answer.more = self._due_now() if left > 0 else self._next_queue(queues, skip) is not None
        return answer

    def _due_now(self) -> bool:
        """What came due since the house was kept is not left for the next second."""
        first = self.due.first()
        if first is None or first[1] > self.now:
            return False
        self.promote(32)
        return True

    def _next_queue(self, queues: Sequence[str], skip: set[str]) -> str | None:
        open_ = [q for q in queues if q not in skip and self.ready[q]]
        return min(open_, key=lambda q: self.queue_passes.get(q, 0.0)) if open_ else None

    def _charge_queue(self, q: str) -> None:
        served = max(self.queue_passes.get("", 0.0), self.queue_passes.get(q, 0.0))
        self.queue_passes[""] = served
        self.queue_passes[q] = served + 1 / self.limit(f"queue:{q}").weight

    def _examine(self, q: str, skip: set[str]) -> Job | None:
        """Look at the one lane whose turn it is: a started job, or nothing and something is in its place."""
        first = self.ready[q].first()
        assert first
        member, served = first
        turn = member[0] == "~"
        if turn:
            name = self._first(self.rl[q, member[1:]])
        else:
            group = self.wt[member[1:], q]
            t, noted = group.first() or ("", 0.0)
            served = self.passes[q].get(t, 0.0)
            if served > noted:  # it was served elsewhere meanwhile: its turn comes later
                group[t] = served
                self.ready[q][member] = min(group.values())
                return None
            name = self._first(self.wl[member[1:], q, t])
        lane = self.lanes[name]
        job = self.jobs[self._first(lane.jobs)]
        if why := job.expired(self.now):
            self._leave(job)
            self._bury(job, why)
            return None
        blocked = self.check(lane.resources)
        if blocked is None:
            return self._admit(job, served, turn)
        how = self.park(name, *blocked)
        if how == "same" and member == f"!{blocked[0]}":
            self.ready[q].pop(member, None)  # only its own first waiter closes a group
        if how == "queue":
            skip.add(q)
        return None

    @staticmethod
    def _first(z: Z) -> str:
        first = z.first()
        assert first
        return first[0]

    def _admit(self, job: Job, served: float, turn: bool) -> Job:
        q, t = job.q, job.t
        mean = self.means.get((q, t), 0.0)
        micro = min(4_000_000_000, math.floor(mean * 5e5))
        est = micro / 1e6 if micro else GUESS
        self.due.pop(job.id, None)
        self._leave(job)
        self.fences += 1
        job.n, job.fence, job.started, job.est = (
            job.n + 1,
            self.epoch * SPACE + self.fences,
            self.now,
            micro,
        )
        job.state = "R"
        self.charge(job)
        self.leases[job.lease] = self.now + self.lease
        if not turn and f"~{t}" not in self.ready[q]:
            served = max(served, self.vt[q] - CREDIT)
        self.vt[q] = max(self.vt[q], served)
        self._set_pass(q, t, served + est / self.limit(f"tenant:{t}").weight)
        for resource in job.resources[2:]:  # an open group follows its first waiter
            if f"!{resource}" in self.ready[q] and (resource, q) in self.wt:
                self.ready[q][f"!{resource}"] = min(self.wt[resource, q].values())
        return job

    def _set_pass(self, q: str, t: str, value: float) -> None:
        self.passes[q][t] = value
        if f"~{t}" in self.ready[q]:
            self.ready[q][f"~{t}"] = value

    # -- ends of attempts

    def settle(self, lease: str, kind: str, reason: str = "-") -> str:
        if lease not in self.leases:
            self.stale += 1
            return "stale"
        del self.leases[lease]
        job = self.jobs[lease.partition(":")[0]]
        self._free(job)
        if kind == "ok":
            self._finish(job, "S")
        elif kind == "cancelled":
            self._finish(job, "C")
        elif kind == "undeliverable":
            self._bury(job, reason)
        elif kind == "release":
            self._refund(job)
            self._back(job)
        else:
            job.charged += 1
            job.crashes += reason in ("worker_lost", "memory")
            self._fail(job, reason)
        return "ok"

    def _free(self, job: Job) -> None:
        for resource in job.resources:
            self.use[resource].discard(job.lease)
        for resource in job.resources:
            self.event(resource)
        self._correct_pass(job)

    def _correct_pass(self, job: Job) -> None:
        """Slot-seconds: the estimate is replaced by what was used; idle capacity is not a debt."""
        q, t, w = job.q, job.t, self.limit(f"tenant:{job.t}").weight
        used, est = max(0, self.now - job.started) / 1000, job.est / 1e6
        mean = used if not job.est else 1.6 * est + 0.2 * used
        if not job.est or abs(mean - 2 * est) > 0.1 * est:
            self.means[q, t] = float(f"{mean:.6f}")
        change = (used - (est or GUESS)) / w
        value = self.passes[q][t] + change
        others = [p for other, p in self.passes[q].items() if other != t]
        if change > 0 and value > self.vt[q] + LEAD / w and others:
            value = min(value, max(value - change, max(self.vt[q], min(others)) + LEAD / w))
        self._set_pass(q, t, value)

    def _refund(self, job: Job) -> None:
        for resource in job.resources:
            if (limit := self.limit(resource)).n:
                bucket = self.bucket(resource)
                bucket.tokens = min(limit.burst, bucket.tokens + TOKEN)
                self.buckets[resource] = bucket

    def _back(self, job: Job) -> None:
        """To its place in the line; a queue timeout starts anew."""
        job.started, job.state = self.now, "W"
        self._join(job)

    def _fail(self, job: Job, error: str) -> None:
        job.state, job.error = "F", error
        self.failed[job.id] = self.now

    def _finish(self, job: Job, state: str) -> None:
        del self.jobs[job.id], self.index[job.name]
        self.history[job.name] = self.now, state
        if job.key and state == "C":
            del self.keys[job.key]
        self._uncount(job)

    def _bury(self, job: Job, reason: str) -> None:
        self.due.pop(job.id, None)
        job.state, job.error = "X", reason
        self.dead[job.id] = self.now
        self._uncount(job)

    def _uncount(self, job: Job) -> None:
        self.finished[job.q] += 1
        self._forget_tenant(job.q, job.t)

    def decide(self, lease: str, retry_at: int | None, reason: str) -> bool:
        """A decision about the failed attempt of that lease; False: it is not waiting for one (any more)."""
        job = self.jobs.get(lease.partition(":")[0])
        if job is None or job.state != "F" or job.lease != lease:
            return False
        del self.failed[job.id]
        if retry_at is None:
            self._bury(job, reason)
        else:
            job.state, job.eligible = "T", retry_at
            self._set_due(job)
        return True

    def replay(self, job_id: str, generation: int) -> str:
        """A dead letter goes back, if it is that very death and the door would take it."""
        job = self.jobs.get(job_id)
        if job is None or job.state != "X":
            return "gone"
        if job.generation != generation:
            return "changed"
        if 0 < job.order.deadline_ms <= self.now:
            return "expired"
        if self.keys.get(job.key, (job.name,))[0] != job.name:
            return "conflict"
        match self._bound(job.order):
            case Closed():
                return "closed"
            case Full():
                return "full"
        most = self.limit(f"queue:{job.q}").depth
        if most >= 0 and self.unfinished(job.q) + 1 >= 0.9 * most:
            self._retry_after(job.q)
            return "pressure"
        del self.dead[job_id]
        job.state, job.error, job.generation = "W", "", job.generation + 1
        job.charged = job.crashes = job.lost = job.est = job.started = 0
        job.eligible = job.created = self.now
        if job.key:
            self.keys[job.key] = job.name, job.body_hash
        self._join(job)
        return "ok"

    def extend(self, worker: str, leases: Sequence[str]) -> tuple[list[str], bool]:
        known = worker in self.workers
        if known:
            self.workers[worker] = self.now
        for lease in leases:
            if lease in self.leases:
                self.leases[lease] = self.now + self.lease
        return [lease for lease in leases if lease not in self.leases], known

    # -- the house

    def reap(self, most: int) -> tuple[int, int]:
        """(requeued, failed). A gap in the pulse: heartbeats could not arrive, so judge nothing for one lease."""
        if self.now - self.pulse > GAP:
            self.judge = self.now + self.lease
        self.pulse = self.now
        requeued = failed = 0
        if self.judge > self.now:
            return 0, 0
        for lease in self.leases.up_to(self.now, most):
            expiry = self.leases.pop(lease)
            job = self.jobs[lease.partition(":")[0]]
            self._free(job)
            unseen = expiry == job.started + self.lease
            if unseen and job.lost < LOST_REPLIES and not job.at_most_once:
                job.lost += 1
                self._back(job)
                requeued += 1
                continue
            self.lost_leases += 1
            job.crashes, job.charged, job.error = job.crashes + 1, job.charged + 1, "worker_lost"
            if job.crashes == 1 and not job.at_most_once:
                self._back(job)
                requeued += 1
            else:
                self._fail(job, "worker_lost")
                failed += 1
        return requeued, failed

    def expel(self) -> None:
        """Workers that have been silent for four leases are no more (part of the command reap)."""
        if self.judge <= self.now:
            silent = [w for w, at in self.workers.items() if at <= self.now - 4 * self.lease]
            for worker in silent:
                del self.workers[worker]

    def promote(self, most: int) -> int:
        due = self.due.up_to(self.now, most)
        for job_id in due:
            del self.due[job_id]
            job = self.jobs[job_id]
            if why := job.expired(self.now):
                if job.state == "W":
                    self._leave(job)
                self._bury(job, why)
            elif job.state in "DT":
                job.state = "W"
                self._join(job)
        return len(due)

    def sweep(self, queues: Sequence[str]) -> None:
        """Traces that nobody needs (part of the command promote). An empty queue owes nothing to anybody."""
        self.history = {n: (at, s) for n, (at, s) in self.history.items() if at > self.now - self.history_ms}
        for q in queues:
            if not self.unfinished(q) and self.passes[q]:
                self.vt[q] = max(self.vt[q], *self.passes[q].values())
            for t in list(self.passes[q]):
                self._forget_tenant(q, t)

    def configure(self, limits: dict[str, Limit], lease: int) -> None:
        """Other limits. Whoever waits somewhere is looked at again; a lead was measured by the old weight."""
        for name in [n for n in limits if n.startswith("tenant:") and n != "tenant:*"]:
            old, new, t = self.limit(name).weight, limits[name].weight, name[7:]
            for q, passes in self.passes.items():
                if old != new and passes.get(t, 0.0) > self.vt[q]:
                    self._set_pass(q, t, self.vt[q] + (passes[t] - self.vt[q]) * old / new)
        self.limits, self.lease = dict(limits), lease
        for resource in {f"tenant:{t}" for _, t in self.parked} | {r for r, _ in self.wt}:
            self.event(resource)
