"""extend and reap: a lease is kept by heartbeats, and ended by nobody who could not have heard one."""

from __future__ import annotations

from tests.lua.rig import LEASE, Rig, limit

from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, OutcomeKind, SettleWord
from tidegate.domain.states import Reason, State
from tidegate.store import ReapReply


def lose(rig: Rig, *, heard: bool = True) -> ReapReply:
    """The worker of the one running job dies, after a heartbeat or before the first."""
    (lease,) = rig.dump()["leases"]
    if heard:
        rig.tick(500)
        rig.store.extend("w1", [LeaseRef.parse(lease)])
    return rig.live(LEASE)


def seen(rig: Rig, operation: str = "op") -> tuple[State, int, int, str]:
    job = rig.store.job(operation)
    assert job
    return job.state, job.charged, job.crashes, job.reason


# -- extend


def test_heartbeats_keep_a_lease_for_ever(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    assert rig.live(10 * LEASE, alive=[job]) == ReapReply(0, 0)
    assert rig.end(job) is SettleWord.OK


def test_all_leases_of_a_worker_in_one_call(rig: Rig) -> None:
    rig.put("a", "b", "c")
    jobs = rig.take(3)
    rig.tick(1_000)
    reply = rig.store.extend("w1", [job.ref for job in jobs])
    assert (reply.lost, reply.held, reply.known) == ((), False, True)
    assert set(rig.dump()["leases"].values()) == {rig.now + LEASE}


def test_a_worker_learns_what_it_has_lost(rig: Rig) -> None:
    rig.put("a", "b")
    kept, over = rig.take(2)
    rig.end(over)
    never = LeaseRef("5", 5)
    assert rig.store.extend("w1", [kept.ref, over.ref, never]).lost == (over.ref, never)


def test_a_lease_that_ended_and_was_not_reaped_revives(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    for _ in range(LEASE // 1_000 - 1):
        rig.tick(1_000)
        rig.store.reap()
    rig.tick(1_500)
    assert rig.store.extend("w1", [job.ref]).lost == ()
    assert rig.store.reap() == ReapReply(0, 0)
    assert rig.end(job) is SettleWord.OK


def test_an_unknown_worker_is_told_so(rig: Rig) -> None:
    assert not rig.store.extend("stranger", []).known
    assert rig.store.extend("w1", []).known
    rig.store.unregister("w1")
    assert not rig.store.extend("w1", []).known


# -- reap


def test_the_first_crash_goes_straight_back(rig: Rig) -> None:
    rig.put("op")
    rig.one()
    assert lose(rig) == ReapReply(1, 0)
    assert seen(rig) == (State.WAITING, 1, 1, "worker_lost")
    job = rig.one()
    assert (job.attempt, job.charged, job.crashes) == (2, 1, 1)
    assert rig.store.snapshot().leases_expired == 1


def test_the_second_crash_waits_for_the_authority(rig: Rig) -> None:
    rig.put("op")
    rig.one()
    lose(rig)
    rig.one()
    assert lose(rig) == ReapReply(0, 1)
    assert seen(rig) == (State.FAILED, 2, 2, "worker_lost")
    assert rig.take() == ()


def test_a_lost_claim_reply_is_not_charged_twice_and_then_it_is(rig: Rig) -> None:
    """A body that kills its worker before the first heartbeat must not loop."""
    rig.put("op")
    for charged in (0, 0, 1):
        rig.one()
        assert lose(rig, heard=False) == ReapReply(1, 0)
        assert seen(rig)[1:3] == (charged, charged)
    rig.one()
    assert lose(rig, heard=False) == ReapReply(0, 1)


def test_a_job_that_must_not_run_twice_never_goes_back_by_itself(rig: Rig) -> None:
    rig.put("op", effect=Effect.AT_MOST_ONCE)
    rig.one()
    assert lose(rig) == ReapReply(0, 1)
    assert seen(rig) == (State.FAILED, 1, 1, "worker_lost")


def test_a_first_heartbeat_never_came_and_the_body_may_have_started(rig: Rig) -> None:
    """A lease never heard of is usually a lost reply, but nobody can know."""
    rig.put("op", effect=Effect.AT_MOST_ONCE)
    rig.one()
    assert lose(rig, heard=False) == ReapReply(0, 1)
    assert seen(rig) == (State.FAILED, 1, 1, "worker_lost")


def test_a_job_that_must_not_run_twice_may_be_given_back_unstarted(rig: Rig) -> None:
    rig.put("op", effect=Effect.AT_MOST_ONCE)
    job = rig.one()
    assert job.effect is Effect.AT_MOST_ONCE
    rig.end(job, OutcomeKind.RELEASE)
    assert rig.one().attempt == 2


def test_a_crash_keeps_the_place_in_the_line(rig: Rig) -> None:
    rig.put("first", "second")
    rig.one()
    lose(rig)
    assert [job.operation_id for job in rig.take(2)] == ["first", "second"]


def test_reaped_leases_free_what_they_held(rig: Rig) -> None:
    rig.limits(key=limit(conc=1), tenant=limit(conc=1))
    rig.put("a", "b", resources=("key:x",))
    rig.one()
    assert rig.take() == ()
    lose(rig)
    assert len(rig.take(4)) == 1


def test_the_report_of_a_reaped_attempt_is_stale(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    lose(rig)
    assert rig.end(job) is SettleWord.STALE
    assert rig.store.extend("w1", [job.ref]).lost == (job.ref,)


def test_a_claim_reaps_too(rig: Rig) -> None:
    rig.put("op")
    rig.one()
    for _ in range(LEASE // 1_000):
        rig.tick(1_000)
        reply = rig.claim()
    assert [job.operation_id for job in reply.jobs] == ["op"]


def test_reaping_goes_in_steps(rig: Rig) -> None:
    rig.put(*[""] * 10)
    rig.take(10)
    for _ in range(LEASE // 1_000 - 1):
        rig.tick(1_000)
        rig.store.reap()
    rig.tick(1_000)
    assert [rig.store.reap(4).requeued for _ in range(4)] == [4, 4, 2, 0]


# -- the pulse


def test_after_a_gap_in_the_pulse_nothing_is_judged_for_one_lease(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.tick(10 * LEASE)
    assert rig.store.reap() == ReapReply(0, 0)
    assert rig.live(LEASE - 1_000) == ReapReply(0, 0)
    assert rig.store.extend("w1", [job.ref]).lost == ()
    assert rig.live(LEASE - 1_000, alive=[job]) == ReapReply(0, 0)
    assert rig.live(LEASE) == ReapReply(1, 0)


def test_a_clock_that_jumps_forward_ends_no_lease(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.live(3_000, alive=[job])
    rig.tick(365 * 86_400_000)
    assert rig.live(LEASE - 1_000, alive=[job]) == ReapReply(0, 0)
    assert rig.end(job) is SettleWord.OK


def test_a_clock_that_jumps_back_only_delays(rig: Rig) -> None:
    rig.put("op")
    rig.one()
    rig.live(3_000)
    rig.tick(-60_000)
    assert rig.live(60_000) == ReapReply(0, 0)
    assert rig.live(LEASE) == ReapReply(1, 0)


def test_a_gap_of_two_seconds_is_none(rig: Rig) -> None:
    rig.put("op")
    rig.one()
    assert rig.live(16_000, step=2_000) == ReapReply(1, 0)


def test_claims_keep_the_pulse(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.store.extend("w1", [job.ref])
    for _ in range(LEASE // 1_000 - 1):
        rig.tick(1_000)
        rig.claim(0)
    rig.tick(2_000)
    assert rig.store.reap() == ReapReply(1, 0)


# -- workers


def test_a_silent_worker_is_forgotten_after_four_leases(rig: Rig) -> None:
    rig.worker("w2")
    for _ in range(4 * LEASE // 1_000):
        rig.tick(1_000)
        rig.store.extend("w1", [])
        rig.store.reap()
    assert [worker.worker_id for worker in rig.store.snapshot().workers] == ["w1"]
    rig.put("op")
    assert not rig.claim(worker="w2").known
    rig.worker("w2")
    assert rig.claim(worker="w2").jobs


def test_registration_says_who_it_is(rig: Rig) -> None:
    rig.worker("w2", "one", "two")
    workers = {worker.worker_id: worker for worker in rig.store.snapshot().workers}
    assert workers["w2"].queues == ("one", "two")
    rig.store.unregister("w2")
    rig.store.unregister("w2")
    assert [worker.worker_id for worker in rig.store.snapshot().workers] == ["w1"]


def test_a_failed_job_stays_failed(rig: Rig) -> None:
    rig.put("op")
    job: ClaimedJob = rig.one()
    rig.end(job, OutcomeKind.FAILED, Reason.ERROR)
    rig.live(3 * LEASE)
    assert seen(rig) == (State.FAILED, 1, 0, "error")
