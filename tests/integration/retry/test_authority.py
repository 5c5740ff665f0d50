"""The authority on a real store: what fails is tried again or given up, whoever and how many look at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.harness.server import Server
from tests.lua.rig import CLOCK, Rig, outcome

from tidegate.config import Settings, TaskSettings
from tidegate.config.task import RetryPolicySettings
from tidegate.domain.backoff import Jitter
from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason, State
from tidegate.retry import Authority, retry_policy

POLICY = TaskSettings(retry=RetryPolicySettings(max_retries=2, jitter=Jitter.NONE, base=2.0))


@pytest.fixture
def rig(shared_server: Server, fleet: str) -> Iterator[Rig]:
    plain = Settings()
    rig = Rig(
        shared_server.client(),
        shared_server.url,
        replace(plain, fleet=replace(plain.fleet, name=fleet)),
        clock_ms=CLOCK,
    )
    rig.worker()
    rig.tick(1_000)  # the token buckets fill
    yield rig
    rig.close()


def authority(rig: Rig) -> Authority:
    return Authority(rig.store, lambda task: retry_policy(POLICY))


def fail(rig: Rig) -> None:
    rig.store.settle([outcome(rig.one(), OutcomeKind.FAILED, Reason.ERROR)], "w1")


def test_a_job_that_always_fails_is_tried_again_with_growing_waits_and_then_given_up(rig: Rig) -> None:
    rig.put("op")
    for wait in (2_000, 4_000):
        fail(rig)
        assert authority(rig).step().retries == 1
        rig.tick(wait - 1)
        rig.store.promote()
        assert rig.take() == ()
        rig.tick(1)
        rig.store.promote()
    fail(rig)
    assert authority(rig).step().retries == 0
    assert rig.state("op") is State.DEAD
    seen = rig.store.job("op")
    assert seen is not None
    assert (seen.reason, seen.attempt) == ("max_retries", 3)


def test_two_authorities_decide_once(rig: Rig) -> None:
    rig.put(*(f"op-{n}" for n in range(5)))
    for job in rig.take(5):
        rig.end(job, OutcomeKind.FAILED, Reason.ERROR)
    first, second = authority(rig), authority(rig)
    _, failures = rig.store.failures()
    assert first.step().accepted == len(failures) == 5
    assert second.step().seen == 0
    assert rig.store.snapshot().queues["default"].retry_waiting == 5


def test_more_than_a_batch_asks_for_another_round(rig: Rig) -> None:
    for start in range(0, 105, 5):
        rig.put(*(f"op-{start + n}" for n in range(5)))
        for job in rig.take(5):
            rig.end(job, OutcomeKind.FAILED, Reason.ERROR)
        rig.tick(100)
    who = authority(rig)
    assert who.step().more
    last = who.step()
    assert (last.seen, last.more) == (5, False)
