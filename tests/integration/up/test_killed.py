"""Killed with SIGKILL at any moment and started again, `tidegate up` goes on where it was. `make faults` kills more."""

from __future__ import annotations

import pytest
from tests.integration.up.conftest import MakeStage
from tests.integration.up.scenario import kills
from tests.integration.up.stage import free_address


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_where_it_was(make_up: MakeStage) -> None:
    stage = make_up(address=free_address())
    verdict = kills(stage, rounds=6, seed=20260308)
    assert len(verdict.accepted) > 12
    assert verdict.lost() == set()
    assert verdict.overlaps(possible=True) == []
    assert verdict.duplicates() == {}
