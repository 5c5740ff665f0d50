"""Real workers with short leases: every pool keeps its leases, loses them in time, and gives back politely."""

from __future__ import annotations

import os
import signal

import pytest
from tests.harness.procfs import boot_time, identify
from tests.harness.wait import wait_until
from tests.integration.lease.stage import MakeStage, bodies, gone, watchdog

from tidegate.domain.states import State

POOLS = ["prefork", "threads", "solo"]


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_job_longer_than_the_lease_runs_once(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, other = stage.worker(pool), stage.worker(pool)
    jobs = stage.send(2, 7.0) + stage.send(2, 5.0, task="spin")
    stage.wait_done(jobs, 60)
    stage.wait_empty()
    assert [stage.begun(job) for job in jobs] == [1, 1, 1, 1]
    worker.term()
    other.term()
    assert stage.ended(worker) == stage.ended(other) == 0


@pytest.mark.parametrize("pool", ["threads", "solo"])
@pytest.mark.slow
def test_a_c_call_longer_than_the_lease_ends_the_worker_before_the_lease(
    make_stage: MakeStage, pool: str
) -> None:
    stage = make_stage()
    worker = stage.worker(pool, 2)
    (job,) = stage.send(1, 30, task="hog")
    stage.wait_running(1)
    began = boot_time()
    assert worker.wait(10) == -signal.SIGKILL
    assert boot_time() - began < stage.lease, "the lease of the last heartbeat has not ended yet"
    wait_until(
        lambda: stage.state(job) is State.RUNNING or stage.state(job) is State.WAITING, "its lease to matter"
    )
    other = stage.worker("prefork", 1)
    wait_until(lambda: stage.begun(job) == 2, "another worker to run it", 20)
    other.kill_family()
    assert stage.overlaps() == []


@pytest.mark.slow
def test_a_c_call_longer_than_the_lease_is_nothing_to_a_child(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.worker("prefork", 1)
    (job,) = stage.send(1, 7, task="hog")
    stage.wait_done([job], 20)
    stage.wait_empty()
    assert stage.begun(job) == 1


@pytest.mark.slow
def test_the_subprocesses_of_a_body_end_with_it(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.worker("prefork", 1)
    stage.send(1, 60.0, task="spawn")
    wait_until(lambda: stage.book.count("spawned") == 1, "the subprocess", 20)
    (pid,) = [entry.info["pid"] for entry in stage.entries() if entry.kind == "spawned"]
    subprocess = identify(pid)
    assert subprocess is not None
    child = bodies(worker)[0]
    worker.freeze()
    wait_until(lambda: gone(child, subprocess), "the end of both", stage.lease + 1)
    worker.thaw()


@pytest.mark.slow
def test_ctrl_c_ends_a_worker_politely(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.worker("prefork", 2)
    jobs = stage.send(2, 2.0)
    stage.wait_running(2)
    os.killpg(worker.pid, signal.SIGINT)  # what a terminal does
    stage.ended(worker)
    assert stage.done() == set(jobs)
    assert stage.counts() == (0, 0)


@pytest.mark.slow
def test_a_watchdog_that_somebody_killed_comes_back(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.worker("prefork", 1)
    first = watchdog(worker)
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: gone(first) and len(worker.children()) == 2, "another one")
    assert watchdog(worker) != first
    (job,) = stage.send(1, 0.1)
    stage.wait_done([job], 10)
    worker.term()
    assert stage.ended(worker) == 0


@pytest.mark.slow
def test_sighup_replaces_the_worker_and_leaves_nothing_of_the_old_one(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.worker("prefork", 1, script=True)  # Celery cannot restart itself under `python -m`
    before = (*bodies(worker), watchdog(worker))
    stage.send(1, 1.5)
    stage.wait_running(1)
    worker.send(signal.SIGHUP)
    worker.wait_for_text(" ready.", count=2)
    wait_until(lambda: gone(*before), "the old children and the old watchdog to end")
    jobs = stage.send(1, 0.1)
    stage.wait_done(stage.jobs, 10)
    assert stage.begun(jobs[0]) == 1
    assert len(stage.store.snapshot().workers) == 1, "the old one took its leave"
    assert len(worker.children()) == 2


@pytest.mark.slow
def test_children_that_are_replaced_after_each_task_stay_guarded(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.worker("prefork", 2, options=["--max-tasks-per-child", "1"])
    jobs = stage.send(6, 0.1)
    stage.wait_done(jobs, 20)
    long = stage.send(2, 30.0)
    stage.wait_running(2)
    running = bodies(worker)
    worker.freeze()
    wait_until(lambda: gone(*running), "the end of both bodies", stage.lease + 1)
    assert stage.running() == 2
    assert all(stage.begun(job) == 1 for job in long)
    worker.thaw()


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_that_starts_before_its_store_waits_for_it(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    (job,) = stage.send(1, 0.1)
    stage.server.stop()
    worker = stage.worker(pool, 1, ready=False)
    worker.wait_for_text("Cannot connect to", count=2)
    stage.server.start()
    stage.wait_done([job], 20)
    assert stage.begun(job) == 1
    worker.term()
    assert stage.ended(worker) == 0
