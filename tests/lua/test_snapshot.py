"""snapshot: ages by what is waited for, tenants, and what was counted; each example of the contract is one test."""

from __future__ import annotations

from tests.lua.conftest import MakeRig
from tests.lua.rig import UNLIMITED, Rig, limit

from tidegate.config import QueueSettings, TenantSettings
from tidegate.domain.decision import Retry
from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason
from tidegate.store import TenantNow


def ages(rig: Rig, queue: str = "default") -> tuple[int, int]:
    """(capacity, limit) in ms."""
    now = rig.store.snapshot().queues[queue]
    assert now.oldest_age_ms == max(now.capacity_age_ms, now.limit_age_ms)
    return now.capacity_age_ms, now.limit_age_ms


def one_at_a_time(make: MakeRig) -> Rig:
    rig = make(tenants={"one": TenantSettings(max_concurrency=1, rate=None, max_depth=None)})
    rig.worker()
    rig.tick(1_000)
    return rig


def test_an_empty_queue_and_one_in_which_nothing_waits(rig: Rig) -> None:
    assert ages(rig) == (0, 0)
    rig.put("a")
    rig.tick(5_000)
    rig.one()
    rig.tick(5_000)
    assert ages(rig) == (0, 0), "all slots busy, and nobody waits"


def test_a_job_that_was_delayed_for_ten_hours_is_young(rig: Rig) -> None:
    rig.put("late", delay_ms=36_000_000)
    rig.tick(36_000_000)
    rig.store.promote()
    assert ages(rig) == (0, 0)
    rig.tick(7_000)
    assert ages(rig) == (7_000, 0)


def test_waiting_beside_a_retry_that_is_due_later(rig: Rig) -> None:
    rig.put("failed")
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.ERROR)
    (failure,) = rig.store.failures()[1]
    rig.store.decide([(failure, Retry(rig.now + 3_600_000, Reason.ERROR))])
    rig.put("waits")
    rig.tick(90_000)
    assert ages(rig) == (90_000, 0)


def test_a_retry_counts_from_its_due_time(rig: Rig) -> None:
    rig.put("failed")
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.ERROR)
    (failure,) = rig.store.failures()[1]
    rig.store.decide([(failure, Retry(rig.now + 10_000, Reason.ERROR))])
    rig.tick(14_000)
    rig.store.promote()
    assert ages(rig) == (4_000, 0)


def test_a_tenant_at_its_limit_does_not_wait_for_capacity(make: MakeRig) -> None:
    rig = one_at_a_time(make)
    rig.put("runs", "waits", tenant="one")
    rig.take(4)
    rig.tick(60_000)
    assert ages(rig) == (0, 60_000)


def test_somebody_else_beside_it_does(make: MakeRig) -> None:
    rig = one_at_a_time(make)
    rig.put("runs", "waits", tenant="one")
    rig.take(4)
    rig.tick(50_000)
    rig.put("other", tenant="two")
    rig.tick(10_000)
    assert ages(rig) == (10_000, 60_000)


def test_a_lane_at_another_limit(make: MakeRig) -> None:
    rig = make()
    rig.worker()
    rig.limits(dep__s=limit(conc=1))
    rig.put("runs", "waits", resources=("dep:s",))
    rig.take(4)
    rig.tick(2_000)
    assert ages(rig) == (0, 2_000)


def test_many_lanes_at_limits_do_not_hide_the_one_that_waits_for_a_worker(make: MakeRig) -> None:
    rig = make(tenants={"*": UNLIMITED})
    rig.worker()
    rig.limits(key=limit(conc=0))
    for number in range(70):
        rig.put(f"k-{number}", resources=(f"key:{number}",))
    for _ in range(10):
        assert rig.take(16) == ()
    rig.tick(30_000)
    rig.put("free", tenant="two")
    rig.tick(1_000)
    assert ages(rig) == (1_000, 31_000)


def test_tenants_that_run_and_tenants_that_wait(make: MakeRig) -> None:
    rig = one_at_a_time(make)
    rig.put("a", "b", "c", tenant="one")
    rig.put("d", "e", tenant="two")
    rig.take(8)
    rig.tick(3_000)
    now = rig.store.snapshot()
    assert now.tenants == (TenantNow("two", 2, None), TenantNow("one", 1, 1))
    assert now.tenant_ages == {("default", "one"): 3_000}


def test_limits_and_pauses_are_the_stores_own(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=10)})
    assert rig.store.snapshot().queues["default"].limit == 10
    rig.limits(queue=limit(depth=4, paused=True))
    now = rig.store.snapshot().queues["default"]
    assert (now.limit, now.paused) == (4, True)


def test_what_was_counted(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=2)})
    rig.worker()
    rig.put("a", idempotency_key="k")
    rig.put("a", idempotency_key="k")
    rig.put("b", "c")
    rig.end(rig.one(), OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK)
    now = rig.store.snapshot()
    assert now.queues["default"].taken == 2
    assert now.refused == {("default", "duplicate"): 1, ("default", "full"): 1}
    assert now.died == {("default", "unknown_task"): 1}


def test_a_beat_is_heard_of_when_it_judges_leases(rig: Rig) -> None:
    assert rig.store.snapshot().beat_silent_s is None
    rig.store.reap()
    rig.tick(2_500)
    assert rig.store.snapshot().beat_silent_s == 2.5


def test_fires_by_fate_and_how_late_the_latest_was(rig: Rig) -> None:
    key = rig.store.key_prefix
    rig.client.hset(f"{key}fates", mapping={"daily%20report emitted": 3, "daily%20report missed": 1})
    rig.client.hset(f"{key}meta", "fire_lag", 1_200)
    now = rig.store.snapshot()
    assert now.fires == {("daily report", "emitted"): 3, ("daily report", "missed"): 1}
    assert now.fire_lag_ms == 1_200
