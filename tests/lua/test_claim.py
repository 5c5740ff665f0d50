"""claim: jobs with leases, each charged to every resource it occupies, or nothing charged at all."""

from __future__ import annotations

from tests.lua.conftest import MakeRig
from tests.lua.rig import LEASE, Rig, limit, outcome

from tidegate.domain.job import OutcomeKind, SettleWord
from tidegate.domain.states import Reason, State


def started(rig: Rig, slots: int = 8) -> list[str]:
    return [job.operation_id for job in rig.take(slots)]


def test_a_claimed_job_is_whole(rig: Rig) -> None:
    rig.put("op", step="s", task="t", task_id="id", envelope=b"\x00\xff body", deadline_ms=rig.now + 9_000)
    rig.tick(500)
    job = rig.one()
    assert (job.operation_id, job.step, job.task, job.task_id) == ("op", "s", "t", "id")
    assert (job.queue, job.tenant, job.envelope) == ("default", "default", b"\x00\xff body")
    assert (job.attempt, job.charged, job.crashes) == (1, 0, 0)
    assert (job.created_ms, job.claimed_ms, job.deadline_ms) == (rig.now - 500, rig.now, rig.now + 8_500)
    assert rig.state("op", "s") is State.RUNNING
    assert rig.dump()["leases"] == {str(job.ref): rig.now + LEASE}


def test_a_claim_takes_no_more_than_it_asks_for(rig: Rig) -> None:
    rig.put(*[""] * 40)
    assert [len(rig.take(n)) for n in (0, 1, 5, 16)] == [0, 1, 5, 16]
    assert len(rig.take(99)) == 16  # the most that one script gives


def test_a_claim_without_slots_brings_its_outcomes(rig: Rig) -> None:
    rig.put("a", "b")
    job = rig.one()
    reply = rig.claim(0, outcomes=[outcome(job)])
    assert (reply.jobs, reply.words) == ((), (SettleWord.OK,))
    assert rig.state("a") is State.SUCCEEDED


def test_a_slot_freed_by_a_rider_is_given_in_the_same_call(rig: Rig) -> None:
    rig.limits(tenant__default=limit(conc=1))
    rig.put("a", "b")
    job = rig.one()
    assert rig.take() == ()
    reply = rig.claim(1, outcomes=[outcome(job)])
    assert [job.operation_id for job in reply.jobs] == ["b"]


def test_a_worker_that_is_not_registered_gets_nothing(rig: Rig) -> None:
    rig.put("a")
    reply = rig.claim(4, worker="stranger")
    assert (reply.jobs, reply.known, reply.more) == ((), False, False)
    assert rig.claim(4).known


def test_only_the_queues_that_were_asked_for(rig: Rig) -> None:
    rig.put("a", queue="one")
    rig.put("b", queue="two")
    assert started(rig) == []
    assert [job.operation_id for job in rig.take(4, queues=("two",))] == ["b"]
    assert rig.take(4, queues=("nowhere",)) == ()


def test_queues_take_turns_by_weight(rig: Rig) -> None:
    rig.limits(queue__one=limit(weight=1), queue__two=limit(weight=3))
    for queue in ("one", "two"):
        rig.put(*[""] * 40, queue=queue)
    served = [job.queue for _ in range(20) for job in rig.take(1, queues=("one", "two"))]
    assert served.count("two") == 15


# -- limits


def test_concurrency_of_a_tenant_is_exact(rig: Rig) -> None:
    rig.limits(tenant__a=limit(conc=2))
    rig.put(*[""] * 5, tenant="a")
    rig.put("other", tenant="b")
    first = rig.take(8)
    assert sorted(job.tenant for job in first) == ["a", "a", "b"]
    assert rig.take(8) == ()
    mine = [job for job in first if job.tenant == "a"]
    rig.end(mine[0], OutcomeKind.FAILED, Reason.ERROR)
    assert len(rig.take(8)) == 1


def test_an_expired_lease_occupies_its_slot_until_it_is_reaped(rig: Rig) -> None:
    rig.limits(tenant=limit(conc=1))
    rig.put("a", "b")
    rig.one()
    for _ in range(LEASE // 1000):
        rig.tick(1_000)
        rig.store.reap()  # the last of them finds the lease ended
    assert started(rig) == ["a"]


def test_limit_nought_stops_a_tenant_and_nobody_else(rig: Rig) -> None:
    rig.limits(tenant__a=limit(conc=0))
    rig.put("a", tenant="a")
    rig.put("b", tenant="b")
    assert started(rig) == ["b"]
    rig.limits()
    assert started(rig) == ["a"]


def test_a_name_never_seen_has_the_default_limit(rig: Rig) -> None:
    rig.limits(tenant=limit(conc=1), key=limit(conc=1))
    rig.put(*[""] * 3, tenant="stranger")
    assert len(started(rig)) == 1
    rig.put("x1", tenant="p", resources=("key:x",))
    rig.put("x2", tenant="q", resources=("key:x",))
    assert started(rig) == ["x1"]


def test_all_resources_or_none(rig: Rig) -> None:
    """What is blocked on one resource has taken nothing of the others."""
    rig.limits(key__a=limit(conc=1), key__b=limit(conc=1))
    rig.put("both", resources=("key:a", "key:b"))
    rig.put("a-only", resources=("key:a",))
    rig.limits(key__a=limit(conc=1), key__b=limit(paused=True))
    assert started(rig) == ["a-only"]
    assert "use:key:b" not in rig.dump()


def test_a_key_serialises_its_jobs_across_tenants_and_queues(rig: Rig) -> None:
    rig.limits(key=limit(conc=1))
    places = [("a", "default"), ("b", "default"), ("a", "second"), ("c", "second")]
    for n, (tenant, queue) in enumerate(places):
        rig.put(f"op-{n}", tenant=tenant, queue=queue, resources=("key:customer",))
    seen = []
    for _ in places:
        (job,) = rig.take(8, queues=("default", "second"))
        seen.append(job.operation_id)
        rig.end(job)
    assert sorted(seen) == ["op-0", "op-1", "op-2", "op-3"]


def test_a_resource_named_twice_is_charged_once(rig: Rig) -> None:
    rig.limits(dep=limit(rate=(1_000, 1), burst=2_000_000))
    rig.tick(5_000)
    rig.put(*[""] * 3, resources=("dep:x", "dep:x"))
    assert len(started(rig)) == 2


def test_the_first_blocker_of_a_lane_is_a_gate_then_a_slot_then_a_bucket(rig: Rig) -> None:
    """So that nothing saves tokens while something else blocks it."""
    limits = {
        "gate": limit(paused=True),
        "slot": limit(conc=1),
        "rate": limit(rate=(1, 1), burst=1_000_000),
    }
    rig.limits(**limits)
    rig.put("holder", resources=("slot:x",))
    rig.one()
    rig.put("all", resources=("gate:x", "rate:x", "slot:x"))
    rig.put("two", resources=("rate:x", "slot:x"))
    rig.put("one", resources=("rate:x",))
    assert started(rig) == []
    parked = {lane["res"].count(":") - 2: lane["at"] for lane in rig.dump().below("lm").values()}
    assert parked == {3: "gate:x", 2: "slot:x", 1: "rate:x"}


def test_a_gate_that_ends_by_itself_opens_by_a_timer(rig: Rig) -> None:
    rig.limits(dep__x=limit(till=rig.now + 3_000))
    rig.put("op", resources=("dep:x",))
    reply = rig.claim()
    assert (reply.jobs, reply.wait_ms) == ((), 1_000)
    assert rig.dump()["timers"] == {"dep:x": rig.now + 3_000}
    rig.tick(2_999)
    assert rig.claim().wait_ms == 1
    rig.tick(1)
    assert started(rig) == ["op"]


# -- parked and woken


def test_parked_lanes_are_woken_one_unit_at_a_time_in_the_order_of_their_tenants(rig: Rig) -> None:
    rig.limits(dep=limit(conc=1))
    for tenant in "abcd":
        rig.put(f"{tenant}1", f"{tenant}2", tenant=tenant, resources=("dep:x",))
    order = []
    for _ in range(8):
        job = rig.one()
        assert rig.take(4) == ()
        order.append(job.operation_id)
        rig.tick(100)
        rig.end(job)
    assert [op[0] for op in order[:4]] == sorted(op[0] for op in order[4:]) == ["a", "b", "c", "d"]


def test_a_unit_freed_for_a_queue_without_workers_is_not_lost_for_the_others(rig: Rig) -> None:
    """A wake is a state of the resource: no message that a dead queue could swallow."""
    rig.limits(dep=limit(conc=1))
    rig.put("x", queue="dead", resources=("dep:r",))
    (job,) = rig.take(1, queues=("dead",))
    rig.put("y", queue="dead", resources=("dep:r",))
    rig.take(1, queues=("dead",))
    rig.put("z", resources=("dep:r",))
    assert started(rig) == []
    rig.end(job)
    assert started(rig) == ["z"]


def test_a_group_is_not_closed_by_a_waiter_that_something_else_blocks(rig: Rig) -> None:
    rig.limits(dep=limit(conc=1), key__y=limit(paused=True))
    rig.put("holder", resources=("dep:r",))
    holder = rig.one()
    rig.put("first", tenant="a", resources=("dep:r",))
    rig.put("second", tenant="b", resources=("dep:r",))
    assert started(rig) == []
    rig.limits(dep=limit(conc=1), tenant__a=limit(conc=0))
    rig.end(holder)
    assert started(rig) == ["second"]


def test_a_tenant_is_parked_once_for_all_its_lanes(rig: Rig) -> None:
    rig.limits(tenant__a=limit(conc=1))
    for n in range(30):
        rig.put(resources=(f"key:{n}",), tenant="a")
    rig.put("b", tenant="b")
    assert sorted(job.tenant for job in rig.take(8)) == ["a", "b"]
    assert rig.dump()["wq:tenant:a"] == {"default"}
    assert len(rig.dump()["rl:default:a"]) == 29


def test_raising_a_limit_wakes_who_waits(rig: Rig) -> None:
    rig.limits(dep=limit(conc=1), tenant=limit(conc=1))
    rig.put(*[""] * 3, resources=("dep:x",))
    assert len(started(rig)) == 1
    rig.limits(dep=limit(conc=2))
    assert len(started(rig)) == 1
    rig.limits()
    assert len(started(rig)) == 1


def test_lowering_a_limit_drains(rig: Rig) -> None:
    rig.put(*[""] * 4)
    running = rig.take(3)
    rig.limits(tenant=limit(conc=1))
    for job in running[:2]:
        rig.end(job)
        assert rig.take() == ()
    rig.end(running[2])
    assert len(rig.take(4)) == 1


def test_nothing_remembers_a_resource_that_nobody_waits_for(rig: Rig) -> None:
    """`key:customer-42` is one of millions: its last waiter may also leave by a timeout."""
    rig.limits(key=limit(conc=1), tenant__a=limit(conc=0))
    rig.put("holder", resources=("key:x",))
    rig.one()
    rig.put("waiter", resources=("key:x",), queue_timeout_ms=2_000)
    rig.put("stopped", tenant="a", queue_timeout_ms=2_000)
    assert started(rig) == []
    assert rig.dump()["blocked"] == {"key:x", "tenant:a"}
    rig.tick(2_000)
    rig.store.promote()
    assert rig.state("waiter") is rig.state("stopped") is State.DEAD
    assert {name.partition(":")[0] for name in rig.dump()} & {"blocked", "wq", "wt", "wl", "rl"} == set()


# -- what the caller is told


def test_more_means_that_the_budget_was_spent_and_work_is_left(rig: Rig) -> None:
    rig.limits(dep=limit(conc=0))
    for n in range(100):
        rig.put(resources=(f"dep:{n}",))
    rig.put("free", tenant="b")
    replies = [rig.claim(1) for _ in range(4)]
    assert [job.operation_id for reply in replies for job in reply.jobs] == ["free"]
    assert any(reply.more for reply in replies)
    while rig.claim(1).more:
        pass
    assert len(rig.dump().below("wt")) == 100


def test_one_waiter_is_told_the_next_instant_and_the_others_idle(rig: Rig) -> None:
    rig.worker("w2")
    rig.put("soon", delay_ms=400)
    rig.limits(dep__x=limit(till=rig.now + 700))
    rig.put("gated", resources=("dep:x",))
    assert [rig.claim(1).wait_ms, rig.claim(1, worker="w2").wait_ms] == [400, 1_000]


def test_a_filled_claim_wakes_another_worker_if_work_is_left(rig: Rig) -> None:
    assert not rig.claim().jobs  # somebody waits
    rig.put("a", "b")
    rig.client.delete(rig.store.keyspace.wake("default"))
    rig.one()
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 1
    rig.one()
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 1


def test_nobody_is_woken_where_nobody_waits(rig: Rig) -> None:
    assert not rig.claim().jobs
    rig.tick(3_001)
    rig.put("a", "b")
    rig.one()
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 0


def test_wakes_do_not_pile_up(rig: Rig) -> None:
    assert not rig.claim().jobs
    for _ in range(50):
        rig.put("")
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 32


def test_a_claim_promotes_and_buries_what_is_due(rig: Rig) -> None:
    """With nobody else alive, delayed jobs still run and timeouts still hold."""
    rig.put("delayed", delay_ms=3_000)
    rig.put("short", queue_timeout_ms=1_000)
    rig.tick(3_000)
    assert started(rig) == ["delayed"]
    assert rig.state("short") is State.DEAD


def test_due_jobs_do_not_wait_for_the_next_look_at_the_house(rig: Rig) -> None:
    rig.put("delayed", delay_ms=100)
    rig.claim()
    rig.tick(100)
    reply = rig.claim()
    assert reply.more or reply.jobs
    assert reply.jobs or started(rig) == ["delayed"]


def test_an_expired_job_is_never_started(rig: Rig) -> None:
    rig.put("timeout", queue_timeout_ms=100)
    rig.put("deadline", deadline_ms=rig.now + 100)
    rig.put("good")
    rig.tick(100)
    assert started(rig) == ["good"]
    dead = {op: rig.store.job(op) for op in ("timeout", "deadline")}
    assert {op: job and (job.state, job.reason) for op, job in dead.items()} == {
        "timeout": (State.DEAD, "queue_timeout"),
        "deadline": (State.DEAD, "deadline"),
    }


def test_time_that_goes_back_does_no_harm(rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1_000, 1), burst=1_000_000))
    rig.tick(1_000)
    rig.put("a", "b", "c")
    assert len(rig.take(3)) == 1
    rig.tick(-60_000)
    assert rig.take(3) == ()
    rig.tick(60_000)
    assert rig.take(3) == ()
    rig.tick(1_000)
    assert len(rig.take(3)) == 1


# -- lost replies


def test_a_lost_claim_gives_the_same_jobs_again(rig: Rig) -> None:
    rig.put("a", "b", "c")
    rig.lose_reply()
    first = rig.take(2)
    assert [(job.operation_id, job.attempt) for job in first] == [("a", 1), ("b", 1)]
    assert [rig.end(job) for job in first] == [SettleWord.OK] * 2
    assert started(rig) == ["c"]


def test_a_lost_claim_gives_only_the_leases_that_still_live(make: MakeRig) -> None:
    mine, other = make(), make()
    mine.worker()
    mine.put("a", "b", "c")

    def meanwhile() -> None:
        leases = sorted(mine.dump()["leases"])
        (job_id, fence) = leases[0].split(":")
        other.forget_scripts()
        other.store._one("settle", "w1", 1, f"{job_id}:{fence}", "ok", "-", "{}")

    mine.lose_reply(meanwhile)
    assert [job.operation_id for job in mine.take(2)] == ["b"]


def test_riders_of_a_lost_claim_are_told_the_same_words(rig: Rig) -> None:
    """After a success the record is gone; asked again, its report must not look stale."""
    rig.put("a", "b")
    job = rig.one()
    rig.lose_reply()
    reply = rig.claim(1, outcomes=[outcome(job)])
    assert reply.words == (SettleWord.OK,)
    assert [job.operation_id for job in reply.jobs] == ["b"]
    assert rig.store.snapshot().stale_reports == 0
