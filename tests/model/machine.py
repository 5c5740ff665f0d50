"""The reference model and the scripts of a real server, driven side by side by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.lua.limits import Limits, too_many
from tests.lua.rig import CLOCK, Rig
from tests.lua.truth import complaints

from tidegate.domain.decision import Dead, Retry
from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, NewJob, Outcome, OutcomeKind, Priority
from tidegate.domain.states import Reason
from tidegate.store import ClaimRequest, Desk
from tidegate.store.start import EPOCH_BASE

from .limit import TOKEN, Limit
from .mirror import differences
from .reference import Model

LEASE = 3_000
TENANTS, QUEUES = ("a", "b", "c"), ("default", "mail")

orders = st.builds(
    NewJob,
    queue=st.sampled_from(QUEUES),
    tenant=st.sampled_from(TENANTS),
    operation_id=st.one_of(st.sampled_from(["op-a", "op-b"]), st.integers(0, 10_000).map("op-{}".format)),
    envelope=st.just(b"{}"),
    step=st.sampled_from(["", "", "s"]),
    resources=st.sampled_from([(), ("dep:s",), ("key:x",), ("dep:s", "key:x"), ("key:x", "key:y")]),
    priority=st.sampled_from([Priority.NORMAL, Priority.NORMAL, Priority.HIGH, Priority.LOW]),
    idempotency_key=st.sampled_from([None, None, None, "k1", "k2"]),
    body_hash=st.sampled_from(["h1", "h1", "h1", "h2"]),
    delay_ms=st.sampled_from([0, 0, 0, 500, 4_000]),
    queue_timeout_ms=st.sampled_from([0, 0, 0, 0, 1_500, 9_000]),
    deadline_ms=st.sampled_from([0, 0, 0, CLOCK + 2_000, CLOCK + 20_000]),
    effect=st.sampled_from([Effect.IDEMPOTENT, Effect.IDEMPOTENT, Effect.AT_MOST_ONCE]),
    continuation=st.sampled_from([False, False, False, True]),
    known_operation=st.just(True),
)
rates = st.sampled_from([(0, 1, 0), (0, 1, 0), (1_000, 1, 2), (2_000, 3, 1), (50_000, 7, 5)])


def _limit(conc: int, rate: tuple[int, int, int], depth: int, weight: float, paused: bool) -> Limit:
    return Limit(weight, conc, rate[0], rate[1], rate[2] * TOKEN, depth, paused)


tenant_limits = st.builds(
    _limit,
    st.sampled_from([-1, -1, 1, 2, 3, 0]),
    rates,
    st.sampled_from([-1, -1, 3, 6]),
    st.sampled_from([1.0, 1.0, 3.0]),
    st.just(False),
)
resource_limits = st.builds(
    _limit,
    st.sampled_from([-1, 1, 1, 2]),
    rates,
    st.just(-1),
    st.just(1.0),
    st.sampled_from([False] * 5 + [True]),
)
queue_limits = st.builds(
    _limit,
    st.just(-1),
    st.just((0, 1, 0)),
    st.sampled_from([-1, 4, 12]),
    st.sampled_from([1.0, 2.0]),
    st.just(False),
)
tables = st.fixed_dictionaries(
    {
        **{f"tenant:{t}": tenant_limits for t in ("a", "b", "*")},
        **{f"queue:{q}": queue_limits for q in QUEUES},
        **dict.fromkeys(("dep:s", "key:*"), resource_limits),
    }
)
ends = st.tuples(st.integers(0, 50), st.sampled_from(list(OutcomeKind)))


class Machine(RuleBasedStateMachine):
    """Subclasses say where the server is: `rig()` gives a new fleet, whose clock stands at CLOCK."""

    rig: Callable[[], Rig]

    def __init__(self) -> None:
        super().__init__()
        self.fleet = type(self).rig()
        self.held: list[ClaimedJob] = []  # every lease ever given, also those that are over
        self.starts: dict[str, list[int]] = {}
        self.refunds: dict[str, list[int]] = {}
        self.served = 0.0
        self.latest = CLOCK
        self.lose = False

    @initialize(table=tables)
    def begin(self, table: dict[str, Limit]) -> None:
        epoch = self.fleet.store.snapshot().epoch + EPOCH_BASE
        self.model = Model(epoch, CLOCK, LEASE, {})
        self.register("w1")
        self.register("w2")
        self.configure(table)

    # -- commands

    def _losing(self) -> None:
        if self.lose:
            self.lose = False
            self.fleet.lose_reply()

    @rule()
    def lose_next_reply(self) -> None:
        """The next command's reply is lost, and it is sent again."""
        self.lose = True

    @rule(batch=st.lists(orders, min_size=1, max_size=5))
    def enqueue(self, batch: list[NewJob]) -> None:
        self._losing()
        assert self.fleet.store.enqueue(batch) == self.model.enqueue(batch)

    @rule(order=orders, copies=st.integers(2, 4))
    def enqueue_many(self, order: NewJob, copies: int) -> None:
        """One lane, several jobs."""
        self.enqueue([replace(order, step=f"s{i}", idempotency_key=None) for i in range(copies)])

    @rule(
        worker=st.sampled_from(["w1", "w1", "w2", "ghost"]),
        queues=st.sampled_from([("default",), ("mail",), QUEUES, QUEUES[::-1]]),
        slots=st.integers(0, 8),
        riders=st.lists(ends, max_size=3),
    )
    def claim(
        self, worker: str, queues: tuple[str, ...], slots: int, riders: list[tuple[int, OutcomeKind]]
    ) -> None:
        outcomes = self._outcomes(riders)
        self._losing()
        reply = self.fleet.store.claim(ClaimRequest(worker, queues, slots, tuple(outcomes)))
        said = self.model.claim(worker, queues, slots, [_told(outcome) for outcome in outcomes])
        given = [(job.ref.job_id, job.ref.fence, job.attempt) for job in reply.jobs]
        assert given == said.jobs
        assert [word.value for word in reply.words] == said.words
        assert (reply.more, reply.known) == (said.more, said.known), (reply, said)
        self._note(outcomes, said.words)
        for job in reply.jobs:
            self.held.append(job)
            for resource in self.model.jobs[job.ref.job_id].resources:
                self.starts.setdefault(resource, []).append(self._instant())
                conc = self.model.limit(resource).conc
                assert conc < 0 or len(self.model.use[resource]) <= conc, f"{resource} is over its limit"
        if said.known and not said.more and len(given) < slots:
            idle = Limits(self.fleet.dump()).startable(queues)
            assert not idle, f"not work-conserving: {idle}"

    @rule(worker=st.sampled_from(["w1", "w2"]))
    def claim_all(self, worker: str) -> None:
        self.claim(worker, QUEUES, 8, [])

    @rule()
    def all_end(self) -> None:
        """Whatever runs is done."""
        live = self._live()
        if live:
            words = self.fleet.store.settle([Outcome(ref, OutcomeKind.OK) for ref in live], "w1")
            assert [word.value for word in words] == [self.model.settle(str(ref), "ok") for ref in live]

    @rule(riders=st.lists(ends, min_size=1, max_size=4))
    def settle(self, riders: list[tuple[int, OutcomeKind]]) -> None:
        outcomes = self._outcomes(riders)
        if outcomes:
            self._losing()
            words = [word.value for word in self.fleet.store.settle(outcomes, "w1")]
            assert words == [self.model.settle(*_told(outcome)) for outcome in outcomes]
            self._note(outcomes, words)

    @rule(which=st.lists(st.integers(0, 50), min_size=1, max_size=3))
    def release(self, which: list[int]) -> None:
        refs = self._refs(which)
        if refs:
            self._losing()
            words = [word.value for word in self.fleet.store.release(refs, "w1")]
            assert words == [self.model.settle(str(ref), "release") for ref in refs]
            self._note([Outcome(ref, OutcomeKind.RELEASE) for ref in refs], words)

    @rule(worker=st.sampled_from(["w1", "w2", "ghost"]), which=st.lists(st.integers(0, 50), max_size=4))
    def extend(self, worker: str, which: list[int]) -> None:
        refs = self._refs(which)
        reply = self.fleet.store.extend(worker, refs)
        lost, known = self.model.extend(worker, [str(ref) for ref in refs])
        assert ([str(ref) for ref in reply.lost], reply.known) == (lost, known)

    @rule(milliseconds=st.sampled_from([1, 40, 300, 1_000, 1_900, 5_000]))
    def time_passes(self, milliseconds: int) -> None:
        self._losing()
        self.model.now += milliseconds
        assert self.fleet.tick(milliseconds) == self.model.now

    @rule()
    def clock_goes_back(self) -> None:
        self.model.now -= 700
        self.fleet.tick(-700)

    @rule(which=st.lists(st.tuples(st.integers(0, 50), st.sampled_from([None, 0, 400, 5_000])), max_size=3))
    def decide(self, which: list[tuple[int, int | None]]) -> None:
        """An authority looks at what has failed, and decides about some of it, perhaps twice."""
        now, failures = self.fleet.store.failures()
        assert now == self.model.now
        assert {failure.ref.job_id for failure in failures} == set(self.model.failed)
        chosen = [(failures[i % len(failures)], wait) for i, wait in which if failures]
        decisions = [
            (each, Dead(Reason.MAX_RETRIES) if wait is None else Retry(now + wait, Reason.ERROR))
            for each, wait in chosen
        ]
        self._losing()
        accepted = self.fleet.store.decide(decisions) if decisions else 0
        said = [
            self.model.decide(str(each.ref), None if wait is None else now + wait, "max_retries")
            for each, wait in chosen
        ]
        assert accepted == sum(said)

    @rule(which=st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=4))
    def replay(self, which: list[tuple[int, bool]]) -> None:
        """Somebody looks at the dead letters and sends some of them back, perhaps twice, perhaps an older death."""
        deaths = list(Desk(self.fleet.store).deaths())
        assert {one.job_id for one in deaths} == set(self.model.dead)
        chosen = [(deaths[i % len(deaths)], older) for i, older in which if deaths]
        meant = [replace(one, generation=max(0, one.generation - older)) for one, older in chosen]
        self._losing()
        answers = Desk(self.fleet.store).replay(meant, by="ann", reason="", detail={})
        assert [a.word for a in answers] == [self.model.replay(one.job_id, one.generation) for one in meant]

    @rule(worker=st.sampled_from(["w1", "w2"]))
    def register(self, worker: str) -> None:
        self.fleet.worker(worker)
        self.model.workers[worker] = self.model.now

    @rule(most=st.sampled_from([1, 32]))
    def reap(self, most: int) -> None:
        reply = self.fleet.store.reap(most)
        assert (reply.requeued, reply.failed) == self.model.reap(most)
        self.model.expel()

    @rule(most=st.sampled_from([1, 100]))
    def promote(self, most: int) -> None:
        self.model.ring(16)
        assert self.fleet.store.promote(most) == self.model.promote(most)
        self.model.sweep(QUEUES)

    @rule()
    def everybody_dies(self) -> None:
        """No heartbeat for a lease, and somebody who judges."""
        self.life(5, [])

    @rule(seconds=st.sampled_from([1, 4, 8]), alive=st.lists(st.integers(0, 50), max_size=3))
    def life(self, seconds: int, alive: list[int]) -> None:
        """Time in a healthy fleet: a pulse every second, one worker whose heartbeats arrive."""
        refs = self._refs(alive)
        for _ in range(seconds):
            self.time_passes(1_000)
            if refs:
                self.fleet.store.extend("w2", refs)
                self.model.extend("w2", [str(ref) for ref in refs])
            self.reap(32)

    @rule(table=tables)
    def configure(self, table: dict[str, Limit]) -> None:
        self.fleet.configure(
            [word for name, limit in table.items() for word in (name, str(limit))], lease=LEASE
        )
        self.model.configure(table, LEASE)
        self.starts, self.refunds = {}, {}

    # -- after each step

    @invariant()
    def nothing_is_wrong(self) -> None:
        if not hasattr(self, "model"):
            return
        dump = self.fleet.dump()
        limits = Limits(dump)
        found = [*complaints(dump), *differences(self.model, dump), *limits.forgotten(), *limits.exceeded()]
        assert not found, "\n".join(found)
        served = dump.book("default").vt
        assert served >= self.served, "the virtual time fell"
        self.served = served

    def teardown(self) -> None:
        try:
            if hasattr(self, "model"):
                self._windows()
                self._drain()
        finally:
            self.fleet.close()

    def _windows(self) -> None:
        for resource, starts in self.starts.items():
            limit = self.model.limit(resource)
            if limit.n:
                rate = Fraction(limit.n, limit.d * TOKEN)
                found = too_many(starts, self.refunds.get(resource, []), Fraction(limit.burst, TOKEN), rate)
                assert not found, f"{resource}: {found}"

    def _drain(self) -> None:
        """With all limits lifted everything that waits is served: nothing is stuck, and nothing stays behind."""
        self.configure({})
        for _ in range(40):
            self.time_passes(1_000)
            self.promote(100)
            self.register("w1")
            self.claim("w1", QUEUES, 8, [])
            self.all_end()
            if not any(job.state in "WDRT" for job in self.model.jobs.values()):
                break
        self.nothing_is_wrong()
        left = [job for job in self.model.jobs.values() if job.state in "WDRT"]
        assert not left, f"stuck: {left}"

    # -- what the rules draw

    def _instant(self) -> int:
        """Now, as a bucket sees it: its time never goes back."""
        self.latest = max(self.latest, self.model.now)
        return self.latest

    def _live(self) -> list[LeaseRef]:
        return [LeaseRef.parse(lease) for lease in sorted(self.model.leases, key=_number)]

    def _refs(self, which: Sequence[int]) -> list[LeaseRef]:
        """Of all leases ever given, so that some are over."""
        return [self.held[-1 - i % len(self.held)].ref for i in which] if self.held else []

    def _outcomes(self, riders: Sequence[tuple[int, OutcomeKind]]) -> list[Outcome]:
        refs = self._refs([i for i, _ in riders])
        return [Outcome(ref, kind, Reason.ERROR) for ref, (_, kind) in zip(refs, riders, strict=bool(refs))]

    def _note(self, outcomes: Sequence[Outcome], words: Sequence[str]) -> None:
        for outcome, word in zip(outcomes, words, strict=True):
            job = self.model.jobs.get(outcome.ref.job_id)
            if word == "ok" and outcome.kind is OutcomeKind.RELEASE and job is not None:
                for resource in job.resources:
                    self.refunds.setdefault(resource, []).append(self._instant())


def _told(outcome: Outcome) -> tuple[str, str, str]:
    return str(outcome.ref), outcome.kind.value, outcome.reason.value


def _number(lease: str) -> tuple[int, ...]:
    return tuple(map(int, lease.split(":")))


def machine_on(make: Callable[[], Rig]) -> Any:
    """The machine, as a class whose instances each get a fleet of their own."""
    return type("MachineOnServer", (Machine,), {"rig": staticmethod(make)})
