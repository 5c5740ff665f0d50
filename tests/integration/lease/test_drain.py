"""A polite stop, in every pool: what goes back, when, in which order, and what becomes of bodies that do not finish.

The figures of CELERY.md: un-started jobs are back within about 50 ms, at the front and in order; running ones finish.
"""

from __future__ import annotations

import signal

import pytest
from tests.harness.procfs import boot_time
from tests.harness.wait import wait_until
from tests.integration.lease.stage import MakeStage, Stage

from tidegate.domain.states import State

SLOTS = {"prefork": 2, "threads": 2, "solo": 1}

QUICK_PREFORK = ["prefork", *(pytest.param(pool, marks=pytest.mark.slow) for pool in ("threads", "solo"))]


def back(stage: Stage, waiting: int, running: int) -> float:
    """Seconds until that many jobs wait again."""
    told = boot_time()
    wait_until(
        lambda: stage.counts() == (waiting, running),
        lambda: f"the rest back: {stage.counts()}",
        5,
        interval=0.005,
    )
    return boot_time() - told


@pytest.mark.parametrize("pool", QUICK_PREFORK)
def test_sigterm_gives_back_at_once_and_finishes_the_rest(make_stage: MakeStage, pool: str) -> None:
    stage, slots = make_stage(), SLOTS[pool]
    jobs = stage.send(3 * slots, 1.5)
    worker = stage.worker(pool, slots, prefetch=3)
    stage.wait_running(slots)
    wait_until(lambda: stage.counts() == (0, 3 * slots), "as many leases as the worker may hold")
    worker.term()
    assert back(stage, 2 * slots, slots) < 0.5
    assert stage.ended(worker) == 0
    assert stage.done() == set(jobs[:slots])
    assert stage.book.count("begin") == slots
    assert stage.counts() == (2 * slots, 0)
    assert stage.store.snapshot().workers == (), "it took its leave"


@pytest.mark.slow
def test_what_was_given_back_keeps_its_place_and_costs_nothing(make_stage: MakeStage) -> None:
    stage = make_stage()
    jobs = stage.send(8, 1.0)
    worker = stage.worker("prefork", 2, prefetch=3)
    stage.wait_running(2)
    worker.term()
    assert stage.ended(worker) == 0
    stage.worker("solo", 1)
    stage.wait_done(jobs, 30)
    started = [entry.job for entry in stage.entries() if entry.kind == "begin"]
    assert started[2:] == jobs[2:], "in the order in which they were sent"
    assert all(stage.begun(job) == 1 for job in jobs)
    stage.wait_empty()


@pytest.mark.slow
@pytest.mark.parametrize("pool", SLOTS)
def test_a_body_that_does_not_finish_is_killed_and_handed_back(make_stage: MakeStage, pool: str) -> None:
    stage, slots = make_stage(drain_timeout=1.5), SLOTS[pool]
    jobs = stage.send(slots, 60.0)
    worker = stage.worker(pool, slots)
    stage.wait_running(slots)
    told = boot_time()
    worker.term()
    assert stage.ended(worker) == 0
    assert 1.4 < boot_time() - told < 6
    assert stage.counts() == (slots, 0), "back at once, not when the leases end"
    views = [stage.store.job(job) for job in jobs]
    assert [(view.charged, view.crashes) for view in views if view] == [(0, 0)] * slots
    stage.worker("prefork", slots)
    wait_until(lambda: all(stage.begun(job) == 2 for job in jobs), "another worker to start them", 20)
    assert stage.overlaps() == []


@pytest.mark.slow
@pytest.mark.parametrize("pool", SLOTS)
def test_what_may_not_be_repeated_waits_for_the_authority(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage(drain_timeout=1.0)
    (job,) = stage.send(1, 60.0, task="once")
    worker = stage.worker(pool, 1)
    stage.wait_running(1)
    worker.term()
    assert stage.ended(worker) == 0
    view = stage.store.job(job)
    assert view is not None
    assert (view.state, view.reason) == (State.FAILED, "terminated")


@pytest.mark.slow
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_sigquit_lets_short_bodies_finish(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage(drain_timeout=4.0)
    jobs = stage.send(6, 1.5)
    worker = stage.worker(pool, 2, prefetch=3)
    stage.wait_running(2)
    wait_until(lambda: stage.counts() == (0, 6), "six leases")
    worker.send(signal.SIGQUIT)
    assert back(stage, 4, 2) < 0.5
    stage.ended(worker)
    assert stage.done() == set(jobs[:2])
    assert stage.counts() == (4, 0)


@pytest.mark.slow
@pytest.mark.parametrize("patience", [0.0, 2.0])
def test_sigquit_hands_back_long_bodies_of_children(make_stage: MakeStage, patience: float) -> None:
    stage = make_stage(drain_timeout=patience)
    stage.send(6, 60.0)
    worker = stage.worker("prefork", 2, prefetch=3)
    stage.wait_running(2)
    wait_until(lambda: stage.counts() == (0, 6), "six leases")
    told = boot_time()
    worker.send(signal.SIGQUIT)
    stage.ended(worker)
    assert boot_time() - told < patience + 5
    assert stage.counts() == (6, 0)
    assert stage.book.count("begin") == 2
    assert stage.book.count("end") == 0
