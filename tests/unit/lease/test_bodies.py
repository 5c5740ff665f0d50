"""Which body is killed, when, and which signals a drain listens to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.unit.lease.test_gate import job

from tidegate.domain.job import ClaimedJob, LeaseRef
from tidegate.worker.bodies import ChildBodies
from tidegate.worker.drain import Drain
from tidegate.worker.lease_table import LeaseTable


@dataclass
class Pool:
    """What billiard's pool is told."""

    told: list[tuple[int, int]] = field(default_factory=list)

    def terminate_job(self, pid: int, number: int) -> None:
        self.told.append((pid, number))


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0) as process:
        yield process
        process.kill()


def test_a_body_is_killed_with_its_process_group(child: subprocess.Popen[bytes]) -> None:
    pool = Pool()
    ChildBodies(pool, lambda ref: child.pid).kill([job("a")], "a test")
    assert child.wait(5) == -signal.SIGKILL
    assert pool.told == [(child.pid, signal.SIGKILL)]


def test_a_child_in_our_own_group_is_left_to_the_pool() -> None:
    pool = Pool()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        ChildBodies(pool, lambda ref: process.pid).kill([job("a")], "a test")
        assert process.poll() is None
        process.kill()
    assert pool.told == [(process.pid, signal.SIGKILL)]


def test_a_child_that_is_gone_needs_nothing(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait(5)
    pool = Pool()
    ChildBodies(pool, lambda ref: child.pid).kill([job("a")], "a test")
    assert pool.told == []


def test_a_body_that_nobody_has_accepted_yet_is_found_later(child: subprocess.Popen[bytes]) -> None:
    accepted: dict[LeaseRef, int] = {}
    bodies = ChildBodies(Pool(), accepted.get)
    bodies.kill([job("a")], "a test")
    bodies.look_again()
    assert child.poll() is None
    accepted[job("a").ref] = child.pid
    bodies.look_again()
    assert child.wait(5) == -signal.SIGKILL


class Nothing:
    separate = True

    def kill(self, jobs: object, why: str) -> None:
        raise AssertionError(jobs)

    def look_again(self) -> None:
        raise AssertionError


def replaced(jobs: tuple[ClaimedJob, ...]) -> None:
    raise AssertionError(jobs)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_begins_the_drain_and_goes_on_to_the_earlier_handler(number: signal.Signals) -> None:
    seen: list[int] = []
    before = {
        each: signal.getsignal(each)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    }
    signal.signal(number, lambda received, frame: seen.append(received))
    table = LeaseTable()
    try:
        Drain(table, Nothing(), 25.0, replaced).install()
        os.kill(os.getpid(), number)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert table.draining
    assert seen == [number]


def test_a_drain_that_began_without_a_signal_has_its_whole_time() -> None:
    table = LeaseTable()
    waiting, running = job("a"), job("b")
    table.register([waiting, running])
    assert table.hand(running.ref)
    table.draining = True  # Celery's consumer does that
    drain = Drain(table, Nothing(), 25.0, replaced)
    drain.step(1000.0)
    assert [outcome.ref for outcome in table.take_outcomes()] == [waiting.ref]
    drain.step(1024.9)  # nobody is killed: `Nothing` would say so
