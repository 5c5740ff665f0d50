"""Must: under full memory nothing is lost and no worker exits.

Producers fill a small server until they are told no, a foreigner takes the rest, and a worker goes on living: what
runs keeps its lease, what ends is reported, claims wait. When there is room again, everything accepted runs once.
"""

from __future__ import annotations

import pytest
from tests.harness.processes import Proc
from tests.integration.full_memory.stage import BALLAST, DOORS, LEASE, Stage, cpu_seconds

from tidegate.domain.errors import QueueFull
from tidegate.domain.states import State

PAST_FULL = -2_000_000  # bytes left: what a few ends free changes nothing


def assert_full(refusals: list[QueueFull]) -> None:
    assert refusals
    for error in refusals:
        assert (error.scope, type(error), error.__cause__) == ("store", QueueFull, None)
        assert error.retry_after > 0
        assert error.exit_code == 1


def assert_refused_everywhere(stage: Stage, ballast: str = "") -> None:
    for door in DOORS:
        assert_full(stage.offer(door, 1, ballast))


def assert_all_ran_once(stage: Stage) -> None:
    def done() -> bool:
        now = stage.snapshot().queues["default"]
        return now.waiting + now.running == 0 and not stage.verdict().lost()

    stage.wait(done, "what was accepted to run", timeout=90)
    verdict = stage.verdict()
    assert verdict.reruns() == {}
    assert verdict.unwanted() == set()
    assert verdict.overlaps(possible=True) == []


def assert_calm(stage: Stage, worker: Proc) -> None:
    """For two leases the worker lives, keeps what it holds and hardly asks."""
    refusals, used, since = stage.refusals(), cpu_seconds(worker), stage.now()
    stage.pass_time(2 * LEASE)
    seconds = stage.now() - since
    assert worker.alive, worker.tail()
    assert stage.refusals() - refusals <= 2 * seconds + 4, "claims back off"
    assert cpu_seconds(worker) - used < 0.3 * seconds
    now = stage.snapshot()
    assert (now.leases_expired, now.stale_reports) == (0, 0)
    assert len(now.workers) == 1


def test_producers_are_told_at_85_percent(stage: Stage) -> None:
    """Room is kept for the ends of what was accepted, whether a worker lives or not."""
    _, most = stage.memory()
    stage.take(spare=most // 10)
    stage.wait(lambda: stage.offer("enqueue"), "the mark to be seen")
    assert_refused_everywhere(stage)
    used, most = stage.memory()
    assert used < most, "the server itself would still take something"
    stage.give_back()
    stage.wait(lambda: not stage.offer("enqueue"), "the mark to go")
    stage.worker("solo", 1)
    assert_all_ran_once(stage)


@pytest.mark.slow
def test_a_flood_leaves_room_for_the_claims_that_end_it(stage: Stage) -> None:
    """Else the fleet would have choked itself for good: no claim, no end, nothing ever freed."""
    stage.fill()
    used, most = stage.memory()
    assert 0.8 * most < used < 0.9 * most
    assert_refused_everywhere(stage, BALLAST)  # a smaller job may still fit below the mark
    stage.worker("solo", 1)
    assert_all_ran_once(stage)


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["prefork", pytest.param("threads", marks=pytest.mark.long)])
def test_nothing_is_lost_and_nobody_exits(stage: Stage, pool: str) -> None:
    worker = stage.worker(pool)
    (good, good_gate), (bad, bad_gate) = stage.hold(), stage.hold(fails=True)
    stage.wait_begun(good, bad)
    waiting = [stage.hold() for _ in range(3)]
    stage.fill()
    stage.take(PAST_FULL)
    assert_refused_everywhere(stage)
    assert_calm(stage, worker)

    good_gate.touch()
    stage.wait_state(good, State.SUCCEEDED)
    bad_gate.touch()
    stage.wait_state(bad, State.FAILED)
    found = stage.store.job(bad)
    assert found is not None
    assert "no luck" in found.detail
    stage.wait(lambda: "refuses claims" in worker.text(), "a claim to be refused")
    assert_calm(stage, worker)
    assert_refused_everywhere(stage)
    assert stage.snapshot().queues["default"].running == 0

    stage.client.client_kill_filter(_type="normal", skipme=True)
    assert_calm(stage, worker)

    for _, gate in waiting:
        gate.touch()
    stage.give_back()
    assert_all_ran_once(stage)
    assert worker.alive
    worker.term()
    assert worker.wait() == 0
