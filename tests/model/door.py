"""The door of the reference model: what enqueue accepts, and the line where accepted jobs stand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from tidegate.domain.job import NewJob, Pressure
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted, Closed, Conflict, Duplicate, Full, Verdict

from .job import Job, Lane, Z
from .limit import Limit
from .place import Places

SPACE = 1 << 32  #: ids of one epoch


class Door(Places):
    """Jobs by id and by name, bounds, verdicts."""

    def __init__(self, epoch: int, now: int, limits: dict[str, Limit], history_ms: int) -> None:
        super().__init__(now, limits)
        self.epoch, self.history_ms = epoch, history_ms
        self.job_ids = 0
        self.jobs: dict[str, Job] = {}  # unfinished and dead
        self.index: dict[tuple[str, str], str] = {}
        self.history: dict[tuple[str, str], tuple[int, str]] = {}
        self.keys: dict[str, tuple[tuple[str, str], str]] = {}
        self.due = Z()
        self.means: dict[tuple[str, str], float] = {}
        self.finished: Counter[str] = Counter()
        self.paces: defaultdict[str, tuple[int, int, float]] = defaultdict(lambda: (0, 0, 1000.0))

    # -- enqueue

    def enqueue(self, orders: Sequence[NewJob]) -> list[Verdict]:
        first = self.job_ids + 1
        self.job_ids += len(orders)  # the ids of refused jobs are not used again
        verdicts: list[Verdict] = []
        for order in orders:
            verdict = self._earlier(order) or (None if order.continuation else self._bound(order))
            if verdict is None:
                job = Job.new(str(self.epoch * SPACE + first), order, self.now)
                first += 1
                verdict = self._accept(job)
            verdicts.append(verdict)
        return verdicts

    def state_of(self, name: tuple[str, str]) -> str | None:
        if name in self.index:
            return self.jobs[self.index[name]].state
        at, state = self.history.get(name, (0, ""))
        return state if state and at > self.now - self.history_ms else None

    def _earlier(self, order: NewJob) -> Verdict | None:
        if order.idempotency_key is not None:
            probe = Job.new("", order, self.now)
            if probe.key in self.keys:
                name, body_hash = self.keys[probe.key]
                if body_hash != probe.body_hash:
                    return Conflict(name[0])
                return Duplicate(name[0], State(self.state_of(name) or "S"))
        if order.step or order.known_operation:
            state = self.state_of((order.operation_id, order.step))
            if state:
                return Duplicate(order.operation_id, State(state))
        return None

    def unfinished(self, q: str, t: str | None = None) -> int:
        return sum(j.state != "X" and j.q == q and t in (None, j.t) for j in self.jobs.values())

    def waiting(self, q: str) -> int:
        return sum(j.state == "W" and j.q == q for j in self.jobs.values())

    def _bound(self, order: NewJob) -> Verdict | None:
        queue, tenant = f"queue:{order.queue}", f"tenant:{order.tenant}"
        if self.limit(queue).closed:
            return Closed(order.queue)
        for scope, depth in (
            (queue, self.unfinished(order.queue)),
            (tenant, self.unfinished(order.queue, order.tenant)),
        ):
            most = self.limit(scope).depth
            if 0 <= most <= depth:
                return Full(scope, depth, most, self._retry_after(order.queue) / 1000)
        return None

    def _retry_after(self, q: str) -> int:
        """Time that one job needed to finish lately, judged between two refusals at least a second apart."""
        at, seen, pace = self.paces[q]
        done = self.finished[q]
        if self.now - at >= 1000:
            if at:
                pace = (self.now - at) / (done - seen) if done > seen else pace * 2
            pace = min(30_000.0, max(100.0, pace))
            self.paces[q] = self.now, done, math.floor(pace)
        return math.floor(pace)

    def _accept(self, job: Job) -> Verdict:
        self.jobs[job.id] = job
        self.index[job.name] = job.id
        if job.key:
            self.keys[job.key] = job.name, job.body_hash
        if job.state == "D":
            self._set_due(job)
        else:
            self._join(job)
        return Accepted(job.order.operation_id, self.waiting(job.q), self._pressure(job.q, job.t))

    def _pressure(self, q: str, t: str) -> Pressure:
        levels = [0]
        for most, depth in (
            (self.limit(f"queue:{q}").depth, self.unfinished(q)),
            (self.limit(f"tenant:{t}").depth, self.unfinished(q, t)),
        ):
            if most >= 0:
                levels.append((depth >= 0.7 * most) + (depth >= 0.9 * most))
        return list(Pressure)[max(levels)]

    # -- the line

    def _set_due(self, job: Job) -> None:
        if job.due is not None:
            self.due[job.id] = job.due

    def _join(self, job: Job) -> None:
        self._set_due(job)
        lane = self.lanes.get(job.lane)
        if lane is None:
            self.passes[job.q].setdefault(job.t, self.least_pass(job.q))
            self.lanes[job.lane] = Lane(job.q, job.t, job.resources, jobs=Z({job.id: job.score}))
            self.make_ready(job.lane, new=True)
            return
        before = lane.jobs.first()
        lane.jobs[job.id] = job.score
        if lane.jobs.first() != before:
            self.rehead(job.lane)

    def _leave(self, job: Job) -> None:
        """Out of its lane; the next one of it becomes first."""
        lane = self.lanes[job.lane]
        first = lane.jobs.first()
        if len(lane.jobs) == 1:
            self.unplace(job.lane)
            del self.lanes[job.lane]
            return
        del lane.jobs[job.id]
        if first and first[0] == job.id:
            self.rehead(job.lane)

    def _forget_tenant(self, q: str, t: str) -> None:
        if self.passes[q].get(t, math.inf) <= self.vt[q] and not self.unfinished(q, t):
            del self.passes[q][t]
            self.means.pop((q, t), None)
