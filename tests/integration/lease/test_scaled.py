"""The faults of tests/faults in small: lease 3 s, fewer rounds. Run by `make test-all`."""

from __future__ import annotations

import pytest
from tests.integration.lease import scenario
from tests.integration.lease.stage import MakeStage, Proxied

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

#: one pool at every run, all of them in `make long`
POOLS = ["prefork", *(pytest.param(pool, marks=pytest.mark.long) for pool in ("threads", "solo"))]


@pytest.mark.parametrize("spare", [True, False], ids=["another worker alive", "a new worker"])
def test_a_lost_worker_costs_one_lease_and_a_moment(make_stage: MakeStage, spare: bool) -> None:
    stage = make_stage(lease=3.0)
    # 20 s of 15 are for: the lease, a reap within 1 s, a claim within 1 s, and a new worker's start
    assert scenario.crash(stage, seconds=12, kill_after=5, spare=spare) < 3.0 + 5.0 + (0.0 if spare else 5.0)
    assert stage.overlaps() == []


@pytest.mark.long
def test_frozen_workers_overlap_with_nobody(make_stage: MakeStage) -> None:
    stage = make_stage(lease=3.0)
    scenario.freezes(stage, rounds=3, seconds=6.0, child_rounds=2, long=9.0)
    scenario.settle_accounts(stage, stage.jobs, timeout=60)


def test_a_worker_that_was_frozen_whole_overlaps_for_a_moment_at_most(make_stage: MakeStage) -> None:
    stage = make_stage(lease=3.0)
    scenario.freeze_whole(stage, seconds=6.0)
    stage.wait_done(stage.jobs, 30)
    stage.wait_empty()
    overlaps = stage.overlaps()
    assert all(overlap.since_thaw is not None for overlap in overlaps), "only right after the thaw"
    # documented bound: one look of the guard (0.1 s); the witness of deaths and a busy machine add to it here
    assert all(overlap.seconds < 0.3 for overlap in overlaps), overlaps
    assert all(stage.begun(job) == 2 for job in stage.jobs)


@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_outlives_its_server(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage(lease=15.0)
    stage.send(50, 0.1)
    worker = stage.worker(pool, 2)
    stage.wait_running(1)
    times = scenario.restarts(stage, cycles=2, down=1.0)
    times.append(scenario.client_kills(stage, times=10, within=1.5))
    assert max(times) < 10
    assert worker.alive
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=90)
    assert verdict.reruns() == {}, "nothing was killed: nothing runs twice"


@pytest.mark.faults  # the same with ten of them is among the faults; this one takes most of a minute
@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_outlives_connections_that_are_gone_without_a_word(
    make_stage: MakeStage, proxied: Proxied, pool: str
) -> None:
    server, proxy = proxied
    stage = make_stage(server, url=proxy.url, lease=15.0)
    stage.send(50, 0.1)
    worker = stage.worker(pool, 2)
    stage.wait_running(1)
    assert max(scenario.half_opens(stage, proxy, times=2)) < 20
    assert worker.alive
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=90)
    assert verdict.reruns() == {}, "nothing was killed: nothing runs twice"


def test_a_server_that_forgets_its_last_second_costs_no_overlap(make_stage: MakeStage) -> None:
    stage = make_stage(lease=3.0)
    scenario.forgetful_kills(stage, times=3, forget=1.0, killed_with=[1])
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=90)
    assert scenario.explained(verdict) == ""
