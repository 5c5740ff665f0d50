"""Must 4: the server goes and comes, connections die in every way; each pool consumes again and loses nothing."""

from __future__ import annotations

import pytest
from tests.integration.lease import scenario
from tests.integration.lease.stage import MakeStage, Proxied

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1200)]

POOLS = ["prefork", "threads", "solo"]


def told(times: list[float]) -> float:
    print("consumed again after", ", ".join(f"{seconds:.1f}" for seconds in times), "s")
    return max(times)


@pytest.mark.parametrize("pool", POOLS)
def test_ten_restarts_of_the_server(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage(lease=15.0)
    stage.send(50, 0.1)
    worker = stage.worker(pool, 2)
    stage.wait_running(1)
    assert told(scenario.restarts(stage, cycles=10, down=2.0)) < 10
    assert worker.alive
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=120)
    assert verdict.reruns() == {}, "nothing was killed: nothing runs twice"


@pytest.mark.parametrize("pool", POOLS)
def test_ten_half_open_connections(make_stage: MakeStage, proxied: Proxied, pool: str) -> None:
    server, proxy = proxied
    stage = make_stage(server, url=proxy.url, lease=15.0)
    stage.send(50, 0.1)
    worker = stage.worker(pool, 2)
    stage.wait_running(1)
    assert told(scenario.half_opens(stage, proxy, times=10)) < 20
    assert worker.alive
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=120)
    assert verdict.reruns() == {}, "nothing was killed: nothing runs twice"


@pytest.mark.parametrize("pool", POOLS)
def test_twenty_client_kills_within_three_seconds(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage(lease=15.0)
    stage.send(50, 0.1)
    worker = stage.worker(pool, 2)
    stage.wait_running(1)
    assert told([scenario.client_kills(stage, times=20, within=3.0)]) < 10
    assert worker.alive
    verdict = scenario.settle_accounts(stage, stage.jobs, timeout=120)
    assert verdict.reruns() == {}, "nothing was killed: nothing runs twice"
