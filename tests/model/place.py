"""Where lanes stand in the reference model: ready, or parked on what blocks them (STORE.md §1)."""

from __future__ import annotations

from collections import defaultdict

from .job import Job, Lane, Z
from .limit import TOKEN, UNLIMITED, Bucket, Limit

CREDIT = 5.0  #: slot-seconds that a tenant which was blocked keeps


class Places:
    """Lanes, groups, tenants in turn, limits. Time is `now`; only the commands of `reference.py` move it."""

    def __init__(self, now: int, limits: dict[str, Limit]) -> None:
        self.now, self.start, self.limits = now, now, dict(limits)
        self.lanes: dict[str, Lane] = {}
        self.rl: dict[tuple[str, str], Z] = {}  # (queue, tenant) → its lanes that are not parked
        self.wl: dict[tuple[str, str, str], Z] = {}  # (resource, queue, tenant) → its lanes parked there
        self.wt: dict[tuple[str, str], Z] = {}  # (resource, queue) → tenants with lanes parked there
        self.ready: defaultdict[str, Z] = defaultdict(Z)  # queue → "~tenant" and "!resource"
        self.parked: set[tuple[str, str]] = set()  # (queue, tenant) blocked by the tenant's own limit
        self.shut: set[str] = set()  # queues blocked by their own limit
        self.passes: defaultdict[str, Z] = defaultdict(Z)  # queue → tenant → slot-seconds served / weight
        self.vt: defaultdict[str, float] = defaultdict(float)  # queue → pass of the last tenant served
        self.use: defaultdict[str, set[str]] = defaultdict(set)
        self.buckets: dict[str, Bucket] = {}
        self.timers = Z()

    def limit(self, resource: str) -> Limit:
        default = f"{resource.partition(':')[0]}:*"
        return self.limits.get(resource) or self.limits.get(default) or UNLIMITED

    def least_pass(self, q: str) -> float:
        first = self.passes[q].first()
        return max(self.vt[q], first[1] if first else 0.0)

    # -- may it start?

    def bucket(self, resource: str) -> Bucket:
        """As it is now. An absent one has gathered since the epoch began: absence never means full."""
        stored = self.buckets.get(resource) or Bucket(0, self.start)
        bucket = Bucket(stored.tokens, stored.stamp, stored.rest)
        bucket.refill(self.limit(resource), self.now)
        return bucket

    def blocker(self, resource: str) -> tuple[int, int | None] | None:
        """(order of its kind, the instant at which it may open); None if the resource lets a job in."""
        limit = self.limit(resource)
        if limit.paused or limit.conc == 0:
            return 1, None
        if limit.till > self.now:
            return 1, limit.till
        if 0 < limit.conc <= len(self.use[resource]):
            return 2, None
        if limit.n and (bucket := self.bucket(resource)).tokens < TOKEN:
            return 3, bucket.ready_at(limit, self.now)
        return None

    def check(self, resources: tuple[str, ...]) -> tuple[str, int | None] | None:
        """All together: the first blocker (gates, the latest first; then concurrency; then buckets) and its instant."""
        worst: tuple[str, int, int | None] | None = None
        for resource in resources:
            if (found := self.blocker(resource)) is None:
                continue
            kind, at = found
            later = kind == 1 and worst is not None and worst[1] == 1 and _end(at) > _end(worst[2])
            if worst is None or kind < worst[1] or later:
                worst = resource, kind, at
        return None if worst is None else (worst[0], worst[2])

    def charge(self, job: Job) -> None:
        for resource in job.resources:
            self.use[resource].add(job.lease)
            if self.limit(resource).n:
                bucket = self.bucket(resource)
                bucket.tokens -= TOKEN
                self.buckets[resource] = bucket

    # -- lanes move

    def tenant_ready(self, q: str, t: str) -> None:
        member = f"~{t}"
        if (q, t) not in self.rl or (q, t) in self.parked:
            self.ready[q].pop(member, None)
        elif member not in self.ready[q]:
            known = self.passes[q].get(t)
            served = max(self.least_pass(q) if known is None else known, self.vt[q] - CREDIT)
            self.passes[q][t] = self.ready[q][member] = served

    def unplace(self, name: str) -> None:
        """Out of where it stands, and whatever that empties."""
        lane = self.lanes[name]
        q, t = lane.q, lane.t
        if lane.at == "rl":
            self.rl[q, t].pop(name)
            if not self.rl[q, t]:
                del self.rl[q, t]
                self.ready[q].pop(f"~{t}", None)
                self.parked.discard((q, t))
            return
        group = self.wl[lane.at, q, t]
        group.pop(name)
        if group:
            return
        del self.wl[lane.at, q, t]
        waiting = self.wt[lane.at, q]
        waiting.pop(t)
        if not waiting:
            del self.wt[lane.at, q]
            self.ready[q].pop(f"!{lane.at}", None)

    def make_ready(self, name: str, *, new: bool = False) -> None:
        lane = self.lanes[name]
        if not new and lane.at != "rl":
            self.unplace(name)
        lane.at = "rl"
        self.rl.setdefault((lane.q, lane.t), Z())[name] = lane.score
        self.tenant_ready(lane.q, lane.t)

    def rehead(self, name: str) -> None:
        """Another job is first: re-score in place, and look at what blocks the lane once more."""
        lane = self.lanes[name]
        if lane.at != "rl":
            self.wl[lane.at, lane.q, lane.t][name] = lane.score
            self.event(lane.at)
            return
        self.rl[lane.q, lane.t][name] = lane.score
        if (lane.q, lane.t) in self.parked:
            self.event(f"tenant:{lane.t}")

    def event(self, resource: str) -> None:
        """Something changed about a resource: whoever waits for it is looked at again. Moves no lane."""
        kind, _, name = resource.partition(":")
        if kind == "queue":
            self.shut.discard(name)
        if kind == "tenant":
            for q, t in sorted(self.parked):
                if t == name:
                    self.parked.discard((q, t))
                    self.tenant_ready(q, t)
        for r, q in self.wt:
            if r == resource:
                first = self.wt[r, q].first()
                assert first, "an empty group"
                self.ready[q][f"!{r}"] = first[1]

    def park(self, name: str, resource: str, at: int | None) -> str:
        """The lane cannot start because of that resource. How: queue, tenant, moved, or same (it was there already)."""
        lane = self.lanes[name]
        if at is not None:
            self.timers[resource] = min(at, self.timers.get(resource, at))
        if resource == f"queue:{lane.q}":
            self.shut.add(lane.q)
            return "queue"
        if resource == f"tenant:{lane.t}":
            if lane.at != "rl":
                self.make_ready(name)
            self.parked.add((lane.q, lane.t))
            self.ready[lane.q].pop(f"~{lane.t}", None)
            return "tenant"
        if lane.at == resource:
            return "same"
        self.unplace(name)
        lane.at = resource
        self.wl.setdefault((resource, lane.q, lane.t), Z())[name] = lane.score
        self.wt.setdefault((resource, lane.q), Z()).setdefault(lane.t, self.passes[lane.q].get(lane.t, 0.0))
        return "moved"

    def ring(self, most: int) -> None:
        """Instants that resources waited for."""
        for resource in self.timers.up_to(self.now, most):
            del self.timers[resource]
            self.event(resource)


def _end(at: int | None) -> float:
    return float("inf") if at is None else at
