"""Must 6, the worker's part: the server dies twenty times and forgets its last second each time."""

from __future__ import annotations

import pytest
from tests.integration.lease import scenario
from tests.integration.lease.stage import MakeStage

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]


def test_twenty_forgotten_seconds(make_stage: MakeStage) -> None:
    stage = make_stage(lease=15.0)
    scenario.forgetful_kills(stage, times=20, forget=1.0, killed_with=[3, 7, 11, 15, 19])
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=180)
    print(f"{len(stage.jobs)} jobs, {len(verdict.duplicates())} done twice, all of them attributed")
    assert scenario.explained(verdict) == ""
