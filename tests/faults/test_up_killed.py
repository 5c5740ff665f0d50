"""`tidegate up` killed with SIGKILL at any moment and started again goes on where it was: many times over."""

from __future__ import annotations

import pytest
from tests.integration.up.conftest import MakeStage
from tests.integration.up.scenario import kills
from tests.integration.up.stage import free_address

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_thirty_kills_lose_nothing_and_overlap_nothing(make_up: MakeStage, seed: int) -> None:
    verdict = kills(make_up(address=free_address()), rounds=30, seed=seed)
    print(
        f"{len(verdict.accepted)} jobs, {len(verdict.attempts)} attempts, {len(verdict.reruns())} begun again"
    )
    assert len(verdict.accepted) > 60
    assert verdict.lost() == set()
    assert verdict.overlaps(possible=True) == []
    assert verdict.duplicates() == {}
