"""failures and decide: a failed attempt waits for one decision, and the decision is about that attempt only."""

from __future__ import annotations

import json

from tests.lua.rig import Rig, outcome

from tidegate.domain.decision import Dead, Retry
from tidegate.domain.job import ClaimedJob, OutcomeKind
from tidegate.domain.states import Reason, State
from tidegate.store.call import Failure


def failed(rig: Rig, operation: str = "op", detail: str = '{"message": "no"}') -> ClaimedJob:
    """A job whose first attempt has failed."""
    rig.put(operation)
    job = rig.one()
    rig.store.settle([outcome(job, OutcomeKind.FAILED, Reason.ERROR, detail)], "w1")
    return job


def pass_time(rig: Rig, milliseconds: int) -> None:
    """And what came due is promoted, as every second."""
    rig.tick(milliseconds)
    rig.store.promote()


def waiting(rig: Rig) -> Failure:
    _, (failure,) = rig.store.failures()
    return failure


def test_a_failure_is_told_with_everything_that_decides(rig: Rig) -> None:
    job = failed(rig)
    rig.tick(700)
    now, (failure,) = rig.store.failures()
    assert (now, failure.ref, failure.detail["message"]) == (rig.now, job.ref, "no")
    assert failure.attempt.reason is Reason.ERROR
    assert (failure.attempt.charged, failure.attempt.crashes) == (1, 0)
    assert failure.attempt.first_failed_ms == now - 700


def test_the_oldest_failures_come_first_and_no_more_than_asked_for(rig: Rig) -> None:
    for name in ("a", "b", "c"):
        failed(rig, name)
        rig.tick(10)
    _, two = rig.store.failures(2)
    assert [failure.attempt.created_ms for failure in two] == sorted(f.attempt.created_ms for f in two)
    assert len(two) == 2


def test_a_retry_waits_for_its_instant_and_then_stands_in_line(rig: Rig) -> None:
    failed(rig)
    assert rig.store.decide([(waiting(rig), Retry(rig.now + 5_000, Reason.ERROR))]) == 1
    assert rig.state("op") is State.RETRY_WAITING
    assert rig.store.snapshot().queues["default"].retry_waiting == 1
    pass_time(rig, 4_999)
    assert rig.take() == ()
    pass_time(rig, 1)
    again = rig.one()
    assert (again.attempt, again.charged) == (2, 1)
    assert rig.end(again).value == "ok"
    assert rig.state("op") is State.SUCCEEDED


def test_the_first_failure_is_remembered_through_retries(rig: Rig) -> None:
    failed(rig)
    first = rig.now
    rig.store.decide([(waiting(rig), Retry(rig.now + 1_000, Reason.ERROR))])
    pass_time(rig, 1_000)
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.ATTEMPT_TIMEOUT)
    attempt = waiting(rig).attempt
    assert (attempt.first_failed_ms, attempt.reason, attempt.charged) == (
        first,
        Reason.ATTEMPT_TIMEOUT,
        2,
    )


def test_a_job_that_is_given_up_is_a_dead_letter_with_its_payload_and_its_last_failure(rig: Rig) -> None:
    rig.put("op", envelope=b"payload")
    rig.store.settle([outcome(rig.one(), OutcomeKind.FAILED, Reason.ERROR, '{"message": "no"}')], "w1")
    assert rig.store.decide([(waiting(rig), Dead(Reason.MAX_RETRIES))]) == 1
    seen = rig.store.job("op")
    assert seen is not None
    assert (seen.state, seen.reason, seen.envelope) == (State.DEAD, "max_retries", b"payload")
    assert json.loads(seen.detail) == {"message": "no", "last": "error"}
    counts = rig.store.snapshot().queues["default"]
    assert (counts.dead, counts.failed, counts.depth) == (1, 0, 0)


def test_a_second_decision_about_the_same_attempt_is_too_late(rig: Rig) -> None:
    failed(rig)
    failure = waiting(rig)
    assert rig.store.decide([(failure, Retry(rig.now, Reason.ERROR))]) == 1
    assert rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))]) == 0
    pass_time(rig, 1)
    again = rig.one()
    assert rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))]) == 0
    rig.end(again, OutcomeKind.FAILED, Reason.ERROR)
    assert rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))]) == 0, "it was about the first attempt"
    assert rig.state("op") is State.FAILED


def test_a_decision_whose_reply_was_lost_is_told_again(rig: Rig) -> None:
    failed(rig)
    failure = waiting(rig)
    rig.lose_reply()
    assert rig.store.decide([(failure, Retry(rig.now, Reason.ERROR))]) == 1
    assert rig.state("op") is State.RETRY_WAITING


def test_a_retry_is_dead_at_its_deadline(rig: Rig) -> None:
    rig.put("op", deadline_ms=rig.now + 3_000)
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.ERROR)
    rig.store.decide([(waiting(rig), Retry(rig.now + 5_000, Reason.ERROR))])
    rig.tick(3_000)
    rig.store.promote()
    seen = rig.store.job("op")
    assert seen is not None
    assert (seen.state, seen.reason) == (State.DEAD, "deadline")


def test_a_retry_is_never_refused_by_a_bound_and_counts_in_it(rig: Rig) -> None:
    rig.limits(queue="1 -1 0 1 0 2 0 0 0")
    failed(rig)
    rig.store.decide([(waiting(rig), Retry(rig.now + 100, Reason.ERROR))])
    rig.put("other")
    assert type(rig.put("third")[0]).__name__ == "Full"
    pass_time(rig, 100)
    assert len(rig.take(3)) == 2


def test_nothing_is_decided_during_a_hold(rig: Rig) -> None:
    failed(rig)
    failure = waiting(rig)
    rig.client.hset(f"{rig.store.key_prefix}meta", "hold", rig.now + 1_000)
    assert rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))]) == 0
    rig.tick(1_000)
    assert rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))]) == 1
