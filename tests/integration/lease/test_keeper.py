"""The keeper's thread against a real store, without Celery: extends, flushes, reasserts, drains, and never gives up."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.server import Server
from tests.harness.wait import wait_until

from tidegate.config import Settings, load
from tidegate.domain.job import ClaimedJob, Effect, NewJob, Outcome, OutcomeKind
from tidegate.domain.states import Reason, State
from tidegate.store import ClaimRequest, Store, WorkerInfo
from tidegate.worker.drain import Drain
from tidegate.worker.flush import Flusher
from tidegate.worker.heartbeat import Heartbeat
from tidegate.worker.keeper import Keeper
from tidegate.worker.kennel import Kennel
from tidegate.worker.lease_table import LeaseTable
from tidegate.worker.revive import Reviver
from tidegate.worker.stamp import MODE_CHILDREN, Stamp, boottime_ns, fence_limit_ns
from tidegate.worker.tenure import Tenure

LEASE, BEAT = 1.0, 0.2


@dataclass
class Killed:
    """Stands in for a pool: what would be killed is written down."""

    separate: bool = True
    jobs: list[ClaimedJob] = field(default_factory=list)

    def kill(self, jobs: Sequence[ClaimedJob], why: str) -> None:
        self.jobs += jobs

    def look_again(self) -> None:
        pass


class Worker:
    """Everything of a worker but Celery and bodies."""

    def __init__(self, settings: Settings, url: str, drain_timeout: float = 60.0) -> None:
        self.id = uuid.uuid4().hex
        self.store = Store.open(settings, "worker", url=url)
        self.table = LeaseTable()
        self.stamp = Stamp.create(fence_limit_ns(int(LEASE * 1000)), MODE_CHILDREN, children=4, leases=64)
        self.table.tenure = Tenure(self.stamp)
        self.bodies = Killed()
        self.heartbeat = Heartbeat(self.store, self.id, self.table, self.bodies, self._announce)
        self.flusher = Flusher(self.store, self.id, self.table)
        self.drain = Drain(self.table, self.bodies, drain_timeout, lambda jobs: None)
        self.keeper = Keeper(
            self.store,
            self.table,
            self.heartbeat,
            self.flusher,
            self.bodies,
            self.drain,
            Kennel(self.stamp),
            Reviver(settings),
            self.stamp,
            BEAT,
        )

    def _announce(self) -> None:
        self.store.register(WorkerInfo(self.id, "host", 1, ("default",), 4))

    def claim(self, slots: int = 1) -> tuple[ClaimedJob, ...]:
        """What one claim gives."""
        sent = boottime_ns()
        reply = self.store.claim(ClaimRequest(self.id, ("default",), slots))
        self.table.register(reply.jobs, sent)
        return reply.jobs

    def take(self, number: int) -> list[ClaimedJob]:
        """That many jobs, by as many claims as it needs (a young fleet's token bucket is not full)."""
        taken: list[ClaimedJob] = []

        def enough() -> bool:
            taken.extend(self.claim(number - len(taken)))
            return len(taken) == number

        wait_until(enough, f"{number} jobs")
        return taken

    def close(self) -> None:
        self.keeper.stop(5)
        self.store.close()
        self.stamp.close()


@pytest.fixture
def settings(tmp_path: Path, fleet: str) -> Settings:
    file = tmp_path / "tidegate.toml"
    file.write_text(
        f'[fleet]\nname = "{fleet}"\n[worker]\nlease = "{LEASE}s"\nheartbeat = "{BEAT}s"\n[queues.default]\n'
    )
    return load(file, {})


Hire = Callable[..., Worker]


@pytest.fixture
def hire(settings: Settings, shared_server: Server) -> Iterator[Hire]:
    workers: list[Worker] = []

    def make(url: str = shared_server.url, start: bool = True, drain_timeout: float = 60.0) -> Worker:
        # the settings name the server too: one that is not ours is waited for and not started
        told = replace(settings, broker=replace(settings.broker, url=url))
        worker = Worker(told, url, drain_timeout)
        workers.append(worker)
        assert worker.heartbeat.register()
        if start:
            worker.keeper.start()
        return worker

    yield make
    for worker in workers:
        worker.close()


def enqueue(store: Store, number: int = 1, effect: Effect = Effect.IDEMPOTENT) -> list[str]:
    operations = [uuid.uuid4().hex for _ in range(number)]
    store.enqueue([NewJob("default", "default", operation, b"{}", effect=effect) for operation in operations])
    return operations


def later(seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until, "time to pass", timeout=seconds + 5)


def test_a_held_lease_never_ends_and_the_page_stays_fresh(hire: Hire) -> None:
    worker = hire()
    enqueue(worker.store)
    (job,) = worker.take(1)
    assert worker.table.hand(job.ref)
    judge = hire()  # another worker, whose keeper reaps
    later(2.5 * LEASE)
    assert worker.store.state(job.operation_id) is State.RUNNING
    assert not worker.stamp.silent(boottime_ns())
    assert judge.claim() == ()
    assert worker.bodies.jobs == []


def test_a_lease_that_is_lost_ends_its_body_and_only_that(hire: Hire) -> None:
    worker, judge = hire(start=False), hire()
    operations = enqueue(worker.store, 2)
    lost, waiting = worker.take(2)
    worker.table.hand(lost.ref)
    wait_until(
        lambda: all(judge.store.state(operation) is State.WAITING for operation in operations),
        "silence to cost both leases",
        timeout=4 * LEASE,
    )
    worker.keeper.start()
    wait_until(lambda: worker.bodies.jobs == [lost], "the body's end")
    assert not worker.table.hand(waiting.ref), "nobody may start what is not ours"
    assert worker.stamp.open == 0
    assert worker.heartbeat.counters.lost == 2


def test_a_parked_worker_reports_at_once_and_a_busy_one_within_a_moment(hire: Hire) -> None:
    worker = hire()
    enqueue(worker.store, 2)
    first, second = worker.take(2)
    worker.table.parked = True
    worker.table.hand(first.ref)
    began = time.monotonic()
    worker.table.end(Outcome(first.ref, OutcomeKind.OK))
    wait_until(
        lambda: worker.store.state(first.operation_id) is State.SUCCEEDED, "the report", interval=0.005
    )
    assert time.monotonic() - began < 0.15
    worker.table.parked = False
    beats = worker.heartbeat.counters.good
    wait_until(lambda: worker.heartbeat.counters.good > beats, "the keeper to be done with the first report")
    worker.table.hand(second.ref)
    began = time.monotonic()
    worker.table.end(Outcome(second.ref, OutcomeKind.OK))
    wait_until(
        lambda: worker.store.state(second.operation_id) is State.SUCCEEDED, "the report", interval=0.005
    )
    assert 0.18 < time.monotonic() - began < 0.6, "it waits for a claim to ride on, but not for long"
    assert worker.table.live() == ()


def test_delayed_jobs_become_due_by_the_worker_alone(hire: Hire) -> None:
    worker = hire()
    worker.store.enqueue([NewJob("default", "default", "late", b"{}", delay_ms=300)])
    wait_until(lambda: worker.store.state("late") is State.WAITING, "the delayed job")


def test_a_drain_gives_back_in_order_what_has_not_started(hire: Hire) -> None:
    worker, other = hire(), hire(start=False)
    operations = enqueue(worker.store, 4)
    jobs = worker.take(4)
    assert [job.operation_id for job in jobs] == operations
    worker.table.hand(jobs[0].ref)
    began = time.monotonic()
    worker.drain.begin()
    wait_until(lambda: len(worker.table.live()) == 1, "three jobs to go back", interval=0.005)
    assert time.monotonic() - began < 0.3
    again = other.take(3)
    assert [job.operation_id for job in again] == operations[1:]
    assert [job.charged for job in again] == [0, 0, 0]
    assert worker.store.state(operations[0]) is State.RUNNING
    assert worker.bodies.jobs == []


def test_a_drain_kills_and_hands_back_when_its_time_is_over(hire: Hire) -> None:
    worker = hire(drain_timeout=0.3)
    (often,), (once,) = enqueue(worker.store), enqueue(worker.store, effect=Effect.AT_MOST_ONCE)
    jobs = worker.take(2)
    for job in jobs:
        worker.table.hand(job.ref)
    worker.drain.begin()
    wait_until(lambda: {job.ref for job in worker.bodies.jobs} == {job.ref for job in jobs}, "the kill")
    assert all(worker.store.state(name) is State.RUNNING for name in (often, once)), (
        "not before the body is dead"
    )
    for job in jobs:  # as the pool reports a killed child
        worker.table.end(Outcome(job.ref, OutcomeKind.FAILED, Reason.WORKER_LOST))
    wait_until(lambda: worker.table.live() == (), "the reports")
    assert worker.store.state(once) is State.FAILED
    assert worker.store.state(often) is State.WAITING


def test_a_store_that_is_down_is_waited_for(hire: Hire, own_server: OwnServer) -> None:
    server = own_server(options={"appendonly": "yes"})
    worker = hire(server.url)
    enqueue(worker.store, 2)
    job, done = worker.take(2)
    worker.table.hand(job.ref)
    worker.table.hand(done.ref)
    server.stop()
    worker.table.end(Outcome(done.ref, OutcomeKind.OK))
    wait_until(lambda: not worker.heartbeat.good, "the keeper to notice")
    later(1.0)
    server.start()
    wait_until(lambda: worker.heartbeat.good, "a heartbeat after the restart")
    wait_until(lambda: len(worker.table.live()) == 1, "the report that waited")
    assert worker.store.state(done.operation_id) is State.SUCCEEDED
    assert worker.store.state(job.operation_id) is State.RUNNING
    assert worker.heartbeat.counters.reasserted >= 1
    assert worker.bodies.jobs == []
    assert worker.keeper.surprises == 0


def test_what_the_server_forgot_is_reasserted(hire: Hire, own_server: OwnServer) -> None:
    server = own_server(options={"appendonly": "yes"})
    worker = hire(server.url)
    running, done = enqueue(worker.store, 2)
    mark = server.aof_mark()
    jobs = worker.take(2)
    for job in jobs:
        worker.table.hand(job.ref)
    worker.table.parked = True
    worker.table.end(Outcome(jobs[1].ref, OutcomeKind.OK))
    wait_until(lambda: worker.store.state(done) is State.SUCCEEDED, "the report")
    server.kill9_losing_since(mark)
    server.start()
    wait_until(lambda: worker.heartbeat.counters.reasserted >= 1, "the reassertion")
    wait_until(lambda: worker.store.snapshot().held_ms == 0, "the end of the hold")
    assert worker.store.state(running) is State.RUNNING
    assert worker.store.state(done) is State.SUCCEEDED
    assert worker.claim(4) == (), "neither is given to anybody again"
    assert worker.bodies.jobs == []


def test_a_worker_taken_for_dead_registers_again(hire: Hire) -> None:
    worker = hire()
    worker.store.unregister(worker.id)
    wait_until(lambda: worker.heartbeat.counters.registered == 2, "the keeper to register again")
    enqueue(worker.store)
    worker.take(1)


def test_an_error_nobody_expected_does_not_end_the_thread(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = hire()

    def fail(now: float) -> bool:
        raise RuntimeError("a defect")

    monkeypatch.setattr(worker.flusher, "due", fail)
    wait_until(lambda: worker.keeper.surprises > 0, "the defect")
    monkeypatch.undo()
    good = worker.heartbeat.counters.good
    wait_until(lambda: worker.heartbeat.counters.good > good, "the next heartbeat")
