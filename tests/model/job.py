"""Jobs and lanes of the reference model."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate.domain.job import Effect, NewJob
from tidegate.store.keyspace import digest, lane


class Z(dict[str, float]):
    """A sorted set: member → score; equal scores in the order of their names."""

    def first(self) -> tuple[str, float] | None:
        return min(self.items(), key=lambda item: (item[1], item[0])) if self else None

    def up_to(self, score: float, most: int) -> list[str]:
        """At most that many members, least first, with at most that score."""
        found = sorted((s, m) for m, s in self.items() if s <= score)
        return [m for _, m in found[:most]]


@dataclass(slots=True)
class Job:
    """One accepted job, as the store must remember it."""

    id: str
    order: NewJob
    state: str
    created: int
    eligible: int
    key: str = ""
    body_hash: str = ""
    n: int = 0
    charged: int = 0
    crashes: int = 0
    lost: int = 0
    fence: int = 0
    started: int = 0
    est: int = 0  #: micro-slot-seconds charged at the claim; 0 = the guess
    error: str = ""
    generation: int = 0
    lane: str = ""
    resources: tuple[str, ...] = field(default=())

    @classmethod
    def new(cls, job_id: str, order: NewJob, now: int) -> Job:
        extra = tuple(sorted(set(order.resources)))
        job = cls(job_id, order, "D" if order.delay_ms > 0 else "W", now, now + order.delay_ms)
        job.lane = lane(order.queue, order.tenant, extra)
        job.resources = (f"queue:{order.queue}", f"tenant:{order.tenant}", *extra)
        if order.idempotency_key is not None:
            job.key = digest(order.tenant, order.task, order.idempotency_key)
            job.body_hash = order.body_hash
        return job

    @property
    def q(self) -> str:
        return self.order.queue

    @property
    def t(self) -> str:
        return self.order.tenant

    @property
    def name(self) -> tuple[str, str]:
        return self.order.operation_id, self.order.step

    @property
    def score(self) -> float:
        """Place in its lane: age, moved by its priority."""
        return self.eligible - self.order.priority.value

    @property
    def lease(self) -> str:
        return f"{self.id}:{self.fence}"

    @property
    def at_most_once(self) -> bool:
        return self.order.effect is Effect.AT_MOST_ONCE

    @property
    def waiting_since(self) -> int:
        """What its queue timeout counts from: a job that came back waits since then."""
        return max(self.eligible, self.started)

    @property
    def due(self) -> int | None:
        """When something must happen to it while it waits or is delayed."""
        at = [self.order.deadline_ms] if self.order.deadline_ms else []
        if self.state in "DT":
            at.append(self.eligible)
        elif self.order.queue_timeout_ms:
            at.append(self.waiting_since + self.order.queue_timeout_ms)
        return min(at, default=None)

    def expired(self, now: int) -> str:
        """Why it must not run any more; "" if it may."""
        if 0 < self.order.deadline_ms <= now:
            return "deadline"
        timeout = self.order.queue_timeout_ms
        if self.state == "W" and timeout and self.waiting_since + timeout <= now:
            return "queue_timeout"
        return ""


@dataclass(slots=True)
class Lane:
    """Waiting jobs of one (queue, tenant, resources); `at`: "rl", or the resource that blocks it."""

    q: str
    t: str
    resources: tuple[str, ...]
    at: str = "rl"
    jobs: Z = field(default_factory=Z)

    @property
    def score(self) -> float:
        first = self.jobs.first()
        assert first, "a lane without jobs"
        return first[1]
