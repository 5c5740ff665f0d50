"""Must 3 with its real figures: lease 15 s, heartbeat 3 s, fence 12 s."""

from __future__ import annotations

import pytest
from tests.integration.lease import scenario
from tests.integration.lease.stage import MakeStage

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("spare", [True, False], ids=["another worker alive", "a new worker"])
def test_a_job_of_a_killed_worker_runs_again_within_twenty_seconds(
    make_stage: MakeStage, spare: bool
) -> None:
    stage = make_stage(lease=15.0)
    again = scenario.crash(stage, seconds=60.0, kill_after=40.0, spare=spare)
    print(f"started again {again:.1f} s after the kill")
    assert again <= 20.0
    assert stage.overlaps() == []


def test_twenty_frozen_workers_and_five_frozen_children_overlap_with_nobody(make_stage: MakeStage) -> None:
    stage = make_stage(lease=15.0)
    scenario.freezes(stage, rounds=10, seconds=30.0, child_rounds=5, long=45.0)
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=300)
    print(f"{len(verdict.attempts)} attempts of {len(stage.jobs)} jobs, {len(verdict.reruns())} begun again")
    assert verdict.reruns(), "freezes this long cost leases: else nothing was tested"
