"""settle: the one report about the end of an attempt; a token that is not the lease is refused and counted."""

from __future__ import annotations

import pytest
from tests.lua.rig import Rig, outcome

from tidegate.domain.job import LeaseRef, OutcomeKind, SettleWord
from tidegate.domain.states import Reason, State

ENDS = {
    OutcomeKind.OK: State.SUCCEEDED,
    OutcomeKind.FAILED: State.FAILED,
    OutcomeKind.RELEASE: State.WAITING,
    OutcomeKind.CANCELLED: State.CANCELLED,
    OutcomeKind.UNDELIVERABLE: State.DEAD,
}


@pytest.mark.parametrize("kind", OutcomeKind)
def test_each_end_has_its_state_and_frees_everything(rig: Rig, kind: OutcomeKind) -> None:
    rig.put("op", resources=("key:x",))
    assert rig.end(rig.one(), kind, Reason.UNKNOWN_TASK) is SettleWord.OK
    assert rig.state("op") is ENDS[kind]
    assert not {name for name in rig.dump() if name.startswith(("use:", "leases"))}


@pytest.mark.parametrize("kind", [OutcomeKind.OK, OutcomeKind.CANCELLED])
def test_a_finished_job_leaves_nothing_but_its_name(rig: Rig, kind: OutcomeKind) -> None:
    rig.put("op", envelope=b"x" * 1_000, deadline_ms=rig.now + 60_000, queue_timeout_ms=30_000)
    rig.end(rig.one(), kind)
    assert rig.store.job("op") is None
    kinds = {name.partition(":")[0] for name in rig.dump()}
    assert kinds <= {
        "meta",
        "lim",
        "queues",
        "book",
        "hist",
        "workers",
        "winfo",
        "pass",
        "mean",
        "rq",
        "wake",
        "tick",
    }


def test_a_failed_job_waits_with_its_error(rig: Rig) -> None:
    rig.put("op")
    detail = '{"class": "ValueError", "message": "no: \\u2028 \'\\" {}"}'
    rig.store.settle([outcome(rig.one(), OutcomeKind.FAILED, Reason.ERROR, detail)])
    job = rig.store.job("op")
    assert job
    assert (job.state, job.reason, job.detail) == (State.FAILED, "error", detail)
    assert (job.attempt, job.charged, job.crashes) == (1, 1, 0)
    assert rig.take(4) == ()


def test_an_undeliverable_job_keeps_its_bytes(rig: Rig) -> None:
    rig.put("op", envelope=b"\x80not json", idempotency_key="k")
    rig.end(rig.one(), OutcomeKind.UNDELIVERABLE, Reason.UNDECODABLE)
    job = rig.store.job("op")
    assert job
    assert (job.state, job.reason, job.envelope) == (State.DEAD, "undecodable", b"\x80not json")
    snapshot = rig.store.snapshot()
    assert (snapshot.dead, snapshot.queues["default"].depth) == (1, 0)


def test_a_released_job_goes_back_to_its_place_and_is_not_charged(rig: Rig) -> None:
    rig.put("a", "b", "c")
    first, second = rig.take(2)
    rig.tick(2_000)
    rig.end(second, OutcomeKind.RELEASE)
    rig.end(first, OutcomeKind.RELEASE)
    again = rig.take(3)
    assert [(job.operation_id, job.attempt, job.charged) for job in again] == [
        ("a", 2, 0),
        ("b", 2, 0),
        ("c", 1, 0),
    ]
    assert again[0].ref.fence > second.ref.fence


def test_a_second_report_is_stale(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    assert [rig.end(job), rig.end(job), rig.end(job, OutcomeKind.FAILED)] == [
        SettleWord.OK,
        *[SettleWord.STALE] * 2,
    ]
    assert rig.state("op") is State.SUCCEEDED
    assert rig.store.snapshot().stale_reports == 2


def test_a_report_after_a_give_back_is_stale(rig: Rig) -> None:
    """The record still bears the token; only the lease says who may speak."""
    rig.put("back", "failed")
    back, failed = rig.take(2)
    rig.end(back, OutcomeKind.RELEASE)
    rig.end(failed, OutcomeKind.FAILED, Reason.ERROR)
    assert [rig.end(back), rig.end(failed)] == [SettleWord.STALE] * 2
    assert [rig.state("back"), rig.state("failed")] == [State.WAITING, State.FAILED]


def test_an_old_fence_cannot_end_a_new_attempt(rig: Rig) -> None:
    rig.put("op")
    old = rig.one()
    rig.end(old, OutcomeKind.RELEASE)
    new = rig.one()
    assert rig.end(old) is SettleWord.STALE
    assert rig.state("op") is State.RUNNING
    assert rig.end(new) is SettleWord.OK


@pytest.mark.parametrize("ref", [LeaseRef("1", 1), LeaseRef("x", 5), LeaseRef("9" * 30, 1)])
def test_a_lease_that_never_was_is_stale(rig: Rig, ref: LeaseRef) -> None:
    rig.put("op")
    rig.one()
    assert rig.end(ref) is SettleWord.STALE


def test_a_fence_of_another_job_is_stale(rig: Rig) -> None:
    rig.put("a", "b")
    one, two = rig.take(2)
    assert rig.end(LeaseRef(one.ref.job_id, two.ref.fence)) is SettleWord.STALE
    assert len(rig.dump()["leases"]) == 2


def test_a_long_list_is_sent_in_parts_in_order(rig: Rig) -> None:
    rig.put(*[""] * 40)
    jobs = [*rig.take(16), *rig.take(16), *rig.take(16)]
    reports = [outcome(job) for job in jobs]
    reports.insert(20, outcome(LeaseRef("1", 1)))
    words = rig.store.settle(reports)
    assert words == [SettleWord.OK] * 20 + [SettleWord.STALE] + [SettleWord.OK] * 20


def test_a_lost_reply_is_not_a_stale_report(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.lose_reply(rig.forget_scripts)
    assert rig.end(job) is SettleWord.OK
    assert rig.store.snapshot().stale_reports == 0


def test_a_worker_that_is_not_registered_may_still_report(rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.store.unregister("w1")
    assert rig.end(job) is SettleWord.OK


def test_release_is_the_same_edge(rig: Rig) -> None:
    rig.put("a", "b")
    jobs = rig.take(2)
    assert rig.store.release([job.ref for job in jobs]) == [SettleWord.OK] * 2
    assert rig.store.release([jobs[0].ref, LeaseRef("7", 7)]) == [SettleWord.STALE] * 2
    assert [job.operation_id for job in rig.take(2)] == ["a", "b"]


def test_a_lost_reply_of_release_gives_one_place_back(rig: Rig) -> None:
    rig.put("a")
    job = rig.one()
    rig.lose_reply()
    assert rig.store.release([job.ref]) == [SettleWord.OK]
    assert len(rig.take(4)) == 1


def test_a_released_job_has_its_queue_timeout_anew(rig: Rig) -> None:
    rig.put("op", queue_timeout_ms=1_000)
    rig.tick(900)
    job = rig.one()
    rig.tick(5_000)
    rig.store.extend("w1", [job.ref])
    rig.end(job, OutcomeKind.RELEASE)
    rig.tick(999)
    rig.store.promote()
    assert rig.state("op") is State.WAITING
    rig.tick(1)
    rig.store.promote()
    assert rig.state("op") is State.DEAD


def test_a_released_job_past_its_deadline_is_not_run_again(rig: Rig) -> None:
    rig.put("op", deadline_ms=rig.now + 1_000)
    job = rig.one()
    rig.tick(1_000)
    assert rig.end(job, OutcomeKind.RELEASE) is SettleWord.OK
    assert rig.take() == ()
    assert rig.state("op") is State.DEAD
