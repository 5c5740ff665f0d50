"""Token buckets: exact in every window of the server's time, whole numbers only."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.harness.fixtures import delete_fleet
from tests.harness.server import Server
from tests.lua.conftest import MakeRig
from tests.lua.limits import too_many
from tests.lua.rig import Rig, limit, settings

from tidegate.config import Rate, TenantSettings
from tidegate.domain.job import OutcomeKind

TOKEN = 1_000_000


def starts(rig: Rig, steps: list[int], per_claim: int = 4) -> list[int]:
    """Instants at which jobs start when somebody claims after each step of time."""
    seen: list[int] = []
    now = rig.now
    for step in steps:
        now = rig.tick(step) if step else now
        while jobs := rig.take(per_claim):
            seen += [now] * len(jobs)
            for job in jobs:
                rig.end(job)
    return seen


@pytest.mark.parametrize(
    ("rate", "burst"),
    [((100, 1), 1), ((1_000, 1), 5), ((25_000, 3), 1), ((35, 432), 2), ((333_333, 7), 3)],
    ids=["0.1/s", "1/s", "500/m", "7/d", "odd"],
)
def test_every_window_holds_and_nothing_is_lost(rig: Rig, rate: tuple[int, int], burst: int) -> None:
    rig.limits(tenant=limit(rate=rate, burst=burst * TOKEN))
    rig.put(*[""] * 100)
    per_token = Fraction(rate[1] * TOKEN, rate[0])
    parts = (Fraction(1, 3), Fraction(1, 7), 1, Fraction(2, 5), Fraction(9, 10))
    steps = [int(per_token * part) for part in parts] * 12
    seen = starts(rig, steps)
    assert not too_many(seen, [], Fraction(burst), 1 / per_token)
    if burst > 1:  # then no step could overfill the bucket
        assert len(seen) == int(sum(steps) / per_token)


def test_an_absent_bucket_is_not_a_full_one(rig: Rig) -> None:
    """It holds what it has gathered since the fleet began."""
    rig.limits(tenant=limit(rate=(1_000, 1), burst=5 * TOKEN))
    rig.put(*[""] * 10)
    assert rig.take(8) == ()
    rig.tick(3_000)
    assert len(rig.take(8)) == 3


def test_tokens_that_are_there_stay_when_the_clock_goes_back(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=5 * TOKEN))
    rig.tick(5_000)
    rig.put(*[""] * 10)
    assert len(rig.take(2)) == 2
    rig.tick(-60_000)
    rig.put(*[""] * 10)
    assert len(rig.take(8)) == 3
    rig.tick(60_000)
    assert rig.take(8) == (), "the same minute is not paid twice"


def test_a_full_bucket_gathers_nothing(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=2 * TOKEN))
    rig.put(*[""] * 10)
    rig.tick(100_000)
    assert len(rig.take(8)) == 2
    rig.tick(1_999)
    assert len(rig.take(8)) == 1
    rig.tick(1)
    assert len(rig.take(8)) == 1


def test_the_timer_of_a_parked_tenant_is_exact(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(25_000, 3), burst=TOKEN))  # 500/m = one in 120 ms
    rig.tick(120)
    rig.put("a", "b")
    reply = rig.claim(2)
    assert (len(reply.jobs), reply.wait_ms) == (1, 120)
    rig.tick(119)
    assert rig.claim().wait_ms == 1, "whoever was told the instant is told again"
    assert rig.take() == ()
    rig.tick(1)
    assert len(rig.take()) == 1


def test_what_was_given_back_before_it_started_gives_its_token_back(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1, 1), burst=2 * TOKEN), dep=limit(rate=(1, 1), burst=2 * TOKEN))
    rig.tick(2 * TOKEN)
    rig.put(*[""] * 4, resources=("dep:x",))
    first, _ = rig.take(4)
    assert rig.take(4) == ()
    rig.store.release([first.ref])
    (again,) = rig.take(4)
    assert (again.operation_id, again.attempt) == (first.operation_id, 2)
    rig.end(again, OutcomeKind.FAILED)
    assert rig.take(4) == (), "a failed attempt has used its token"


def test_a_refund_never_overfills(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=TOKEN))
    rig.tick(1_000)
    rig.put("a", "b")
    job = rig.one()
    rig.tick(60_000)
    rig.store.release([job.ref])
    assert len(rig.take(4)) == 1


def test_a_smaller_burst_holds_at_once(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=9 * TOKEN))
    rig.tick(60_000)
    rig.put(*[""] * 12)
    assert len(rig.take(2)) == 2
    rig.limits(tenant=limit(rate=(1_000, 1), burst=3 * TOKEN))
    assert len(rig.take(8)) == 3


def test_buckets_end_when_they_would_be_full(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=2 * TOKEN))
    rig.tick(1_000)
    rig.put("a")
    rig.end(rig.one())
    assert 3_600_000 < rig.dump().ttl["bucket:tenant:default"] <= 3_602_000


def test_the_rate_of_the_settings_arrives(make: MakeRig) -> None:
    rate = TenantSettings(rate=Rate(1_000, 1), burst=2, max_concurrency=None, max_depth=None)
    rig = make(tenants={"a": rate})
    rig.worker()
    rig.put(*[""] * 5, tenant="a")
    rig.tick(10_000)
    assert len(rig.take(8)) == 2


@given(
    rate=st.tuples(st.integers(1, 2_000_000), st.integers(1, 500)),
    burst=st.integers(1, 5),
    steps=st.lists(st.integers(0, 3_000), min_size=5, max_size=25),
)
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rate_and_any_steps(
    shared_server: Server, fleet: str, rate: tuple[int, int], burst: int, steps: list[int]
) -> None:
    client = shared_server.client()
    rig = Rig(client, shared_server.url, settings(fleet))
    try:
        rig.worker()
        rig.limits(tenant=limit(rate=rate, burst=burst * TOKEN))
        rig.put(*[""] * 80)
        seen = starts(rig, steps, per_claim=16)
        assert not too_many(seen, [], Fraction(burst), Fraction(rate[0], rate[1] * TOKEN))
    finally:
        rig.close()
        delete_fleet(client, fleet)
        client.close()
