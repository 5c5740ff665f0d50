"""A fleet on a test clock, driven command by command. The tests of single commands and the machine share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import redis

from tidegate.config import FleetSettings, QueueSettings, Sections, Settings, TenantSettings, WorkerSettings
from tidegate.domain.job import ClaimedJob, LeaseRef, NewJob, Outcome, OutcomeKind, SettleWord
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Verdict
from tidegate.store import ClaimReply, ClaimRequest, ReapReply, Store, WorkerInfo
from tidegate.store.keyspace import encode_resource

from .dump import Dump

CLOCK = 1_800_000_000_000  #: where test clocks start, ms
LEASE = 15_000  #: ms, the default
UNLIMITED = TenantSettings(max_concurrency=None, rate=None, max_depth=None)


def settings(
    fleet: str,
    *,
    tenants: Mapping[str, TenantSettings] | None = None,
    queues: Mapping[str, QueueSettings] | None = None,
    lease: float = LEASE / 1000,
    **options: Any,
) -> Settings:
    """Settings without any limit that the test does not name. options: of [fleet]."""
    return Settings(
        fleet=FleetSettings(name=fleet, **options),
        worker=WorkerSettings(lease=lease, heartbeat=lease / 5),
        queues=Sections({"default": QueueSettings(), **(queues or {})}),
        tenants=Sections({"default": UNLIMITED, **(tenants or {})}),
    )


def limit(
    *,
    weight: float = 1,
    conc: int = -1,
    rate: tuple[int, int] = (0, 1),
    burst: int = 0,
    depth: int = -1,
    paused: bool = False,
    till: int = 0,
    closed: bool = False,
) -> str:
    """What `configure` stores for a resource. rate: micro-tokens per ms as a fraction; burst: micro-tokens."""
    return f"{weight:g} {conc} {rate[0]} {rate[1]} {burst} {depth} {paused:d} {till} {closed:d}"


class Rig:
    """One process of a fleet. The clock moves only when told."""

    def __init__(
        self, client: redis.Redis, url: str, settings: Settings, *, clock_ms: int | None = CLOCK
    ) -> None:
        self.client, self.url, self.settings = client, url, settings
        self.store = Store.open(settings, "tool", url=url, clock_ms=clock_ms)
        self._operations = 0
        self._digests = 0

    def close(self) -> None:
        self.store.close()

    # -- time

    @property
    def now(self) -> int:
        return self.store.snapshot().now_ms

    def tick(self, milliseconds: int) -> int:
        """Time passes, and nobody looks."""
        return self.store.advance_clock(milliseconds)

    def live(self, milliseconds: int, *, step: int = 1000, alive: Sequence[ClaimedJob] = ()) -> ReapReply:
        """Time passes as in a healthy fleet: every second somebody reaps and promotes, and workers extend `alive`."""
        requeued = failed = 0
        while milliseconds > 0:
            self.tick(min(step, milliseconds))
            milliseconds -= step
            if alive:
                self.store.extend("w1", [job.ref for job in alive])
            reply = self.store.reap()
            self.store.promote()
            requeued, failed = requeued + reply.requeued, failed + reply.failed
        return ReapReply(requeued, failed)

    # -- commands

    def worker(self, worker_id: str = "w1", *queues: str) -> str:
        self.store.register(WorkerInfo(worker_id, "host", 1, queues or ("default",), 4))
        return worker_id

    def job(self, operation: str = "", **fields: Any) -> NewJob:
        """A job of an operation of its own; fields as in NewJob."""
        if not operation:
            self._operations += 1
            operation = f"op-{self._operations}"
        known: dict[str, Any] = {"queue": "default", "tenant": "default", "envelope": b"{}"}
        return NewJob(operation_id=operation, **{**known, **fields})

    def put(self, *operations: str, **fields: Any) -> list[Verdict]:
        return self.store.enqueue([self.job(operation, **fields) for operation in operations or ("",)])

    def claim(
        self,
        slots: int = 1,
        worker: str = "w1",
        queues: tuple[str, ...] = ("default",),
        outcomes: Sequence[Outcome] = (),
    ) -> ClaimReply:
        return self.store.claim(ClaimRequest(worker, queues, slots, tuple(outcomes)))

    def take(self, slots: int = 1, **how: Any) -> tuple[ClaimedJob, ...]:
        return self.claim(slots, **how).jobs

    def one(self, **how: Any) -> ClaimedJob:
        """Exactly one job; an assertion if there is none."""
        (job,) = self.take(1, **how)
        return job

    def end(
        self, job: ClaimedJob | LeaseRef, kind: OutcomeKind = OutcomeKind.OK, reason: Reason = Reason.NONE
    ) -> SettleWord:
        (word,) = self.store.settle([outcome(job, kind, reason)], "w1")
        return word

    def state(self, operation: str, step: str = "") -> State | None:
        return self.store.state(operation, step)

    def limits(self, **resources: str) -> None:
        """Replace all limits; `kind__name` stands for kind:name, `kind` alone for the default of its kind."""
        flat: list[str] = []
        for name, text in resources.items():
            kind, _, rest = name.partition("__")
            flat += (encode_resource(f"{kind}:{rest}") if rest else f"{kind}:*", text)
        self.configure(flat)

    def configure(self, pairs: Sequence[str], *, lease: int = 0) -> None:
        self._digests += 1
        fleet = self.settings.fleet
        self.store._one(
            "configure",
            1,
            f"test-{self._digests}",
            lease or round(self.settings.worker.lease * 1000),
            round(fleet.idempotency_ttl * 1000),
            round(fleet.history * 1000),
            fleet.history_jobs,
            *pairs,
        )

    def forget_scripts(self) -> None:
        """The server knows none of our scripts any more, under any name."""
        self.client.script_flush()
        self.client.function_flush()

    # -- lost replies

    def lose_reply(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The next script runs, its reply is lost, and the line asks again under the same request id.

        meanwhile: what happens in the fleet before it asks again.
        """
        (line,) = self.store._idle
        exchange = line._exchange

        def lost(*args: Any) -> list[Any]:
            setattr(line, "_exchange", exchange)  # noqa: B010
            exchange(*args)
            meanwhile()
            raise redis.ConnectionError("the reply was lost")

        setattr(line, "_exchange", lost)  # noqa: B010

    # -- what is there

    def dump(self) -> Dump:
        return Dump(self.client, self.store.key_prefix)


def outcome(
    job: ClaimedJob | LeaseRef,
    kind: OutcomeKind = OutcomeKind.OK,
    reason: Reason = Reason.NONE,
    detail: str = "",
) -> Outcome:
    return Outcome(job.ref if isinstance(job, ClaimedJob) else job, kind, reason, detail)
