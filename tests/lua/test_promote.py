"""promote: delayed jobs, timeouts in the queue, and the sweep of what nobody needs."""

from __future__ import annotations

import pytest
from tests.lua.conftest import MakeRig
from tests.lua.rig import Rig, limit

from tidegate.domain.job import Priority
from tidegate.domain.states import State


def test_a_delayed_job_waits_from_its_instant_on(rig: Rig) -> None:
    rig.put("op", delay_ms=5_000)
    rig.tick(4_999)
    assert rig.store.promote() == 0
    rig.tick(1)
    assert rig.store.promote() == 1
    assert rig.state("op") is State.WAITING
    assert rig.one().eligible_ms == rig.now


def test_a_delayed_job_stands_where_its_instant_puts_it(rig: Rig) -> None:
    rig.put("later", delay_ms=2_000)
    rig.put("first", delay_ms=1_000)
    rig.tick(1_500)
    rig.put("between")
    rig.tick(5_000)
    rig.store.promote()
    assert [job.operation_id for job in rig.take(3)] == ["first", "between", "later"]


def test_the_queue_timeout_starts_when_the_job_can_run(rig: Rig) -> None:
    rig.put("op", delay_ms=5_000, queue_timeout_ms=1_000)
    rig.tick(5_000)
    rig.store.promote()
    rig.tick(999)
    rig.store.promote()
    assert rig.state("op") is State.WAITING
    rig.tick(1)
    rig.store.promote()
    assert rig.state("op") is State.DEAD


@pytest.mark.parametrize("delay", [0, 60_000])
def test_a_deadline_ends_waiting_and_delayed_jobs(rig: Rig, delay: int) -> None:
    rig.put("op", delay_ms=delay, deadline_ms=rig.now + 2_000, idempotency_key="k")
    rig.tick(1_999)
    rig.store.promote()
    assert rig.state("op") is not State.DEAD
    rig.tick(1)
    rig.store.promote()
    job = rig.store.job("op")
    assert job
    assert (job.state, job.reason) == (State.DEAD, "deadline")
    assert rig.take() == ()


def test_a_running_job_is_not_ended_by_its_queue_timeout(rig: Rig) -> None:
    rig.put("op", queue_timeout_ms=1_000)
    job = rig.one()
    rig.live(5_000, alive=[job])
    assert rig.state("op") is State.RUNNING
    assert "due" not in rig.dump()


def test_a_timeout_behind_others_is_taken_out_of_the_middle(rig: Rig) -> None:
    rig.put("a")
    rig.put("b", queue_timeout_ms=1_000)
    rig.put("c")
    rig.tick(1_000)
    rig.store.promote()
    assert [job.operation_id for job in rig.take(3)] == ["a", "c"]


def test_promotion_goes_in_steps(rig: Rig) -> None:
    rig.put(*[""] * 50, delay_ms=1_000)
    rig.tick(1_000)
    assert [rig.store.promote(20) for _ in range(4)] == [20, 20, 10, 0]


def test_a_promoted_job_wakes_a_worker(rig: Rig) -> None:
    rig.put("op", delay_ms=1_000)
    assert not rig.claim().jobs
    rig.tick(1_000)
    rig.store.promote()
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 1


def test_timers_open_groups(rig: Rig) -> None:
    rig.limits(dep__x=limit(till=rig.now + 1_000))
    rig.put("op", resources=("dep:x",))
    rig.claim()
    rig.tick(1_000)
    rig.store.promote()
    assert "!dep:x" in rig.dump()["ready:default"]
    assert "timers" not in rig.dump()


def test_a_high_priority_does_not_move_the_clock_of_a_timeout(rig: Rig) -> None:
    rig.put("op", priority=Priority.URGENT, queue_timeout_ms=1_000)
    rig.tick(999)
    rig.store.promote()
    assert rig.state("op") is State.WAITING


# -- what nobody needs any more


def test_a_fleet_that_ran_empty_forgets_its_tenants(rig: Rig) -> None:
    tenants = [f"t{n}" for n in range(60)]
    for tenant in tenants:
        rig.put("", tenant=tenant)
    for _ in range(4):
        jobs = rig.take(16)
        rig.tick(100)
        for job in jobs:
            rig.end(job)
    assert len(rig.dump()["pass:default"]) > 40
    for _ in range(10):
        rig.store.promote()
    dump = rig.dump()
    assert not {name.partition(":")[0] for name in dump} & {"pass", "ready", "old"}
    assert dump.book("default").tenants == {}


def test_a_tenant_with_a_debt_is_kept_while_others_work(rig: Rig) -> None:
    rig.put("", tenant="debtor")
    job = rig.one()
    rig.put("", "", tenant="other")
    rig.tick(10_000)
    rig.end(job)
    for _ in range(5):
        rig.store.promote()
    assert set(rig.dump().passes("default")) == {"debtor", "other"}


def test_queues_that_no_settings_name_are_swept_too(rig: Rig) -> None:
    rig.put("", queue="wild", tenant="t")
    for job in rig.take(1, queues=("wild",)):
        rig.end(job)
    rig.store.promote()
    assert "pass:wild" not in rig.dump()


def test_history_is_trimmed_in_steps(make: MakeRig) -> None:
    rig = make(history=10.0)
    now = rig.now
    rig.client.zadd(
        f"{rig.store.key_prefix}hist", {f"op-{n} -": (now - 20_000) * 256 + ord("S") for n in range(4_500)}
    )
    sizes = []
    for _ in range(3):
        rig.store.promote()
        sizes.append(rig.client.zcard(f"{rig.store.key_prefix}hist"))
    assert sizes == [2_500, 500, 0]
