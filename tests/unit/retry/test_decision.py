"""The order of checks in `decide`, one by one: each is met with everything behind it allowing a retry."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.backoff import Backoff, Jitter, RetryPolicy
from tidegate.domain.decision import Dead, FailedAttempt, Retry, decide, word
from tidegate.domain.job import Effect
from tidegate.domain.states import Reason

NOW = 1_000_000
POLICY = RetryPolicy(kind=Backoff.FIXED, interval=10, jitter=Jitter.NONE, max_retries=2, window=60)
FAILED = FailedAttempt(
    reason=Reason.ERROR, effect=Effect.IDEMPOTENT, charged=1, crashes=0, created_ms=NOW, first_failed_ms=NOW
)
UNKNOWN = [
    Reason.WORKER_LOST,
    Reason.ATTEMPT_TIMEOUT,
    Reason.SOFT_TIMEOUT,
    Reason.TERMINATED,
    Reason.MEMORY,
]


def verdict(job: FailedAttempt = FAILED, policy: RetryPolicy = POLICY, now_ms: int = NOW) -> Retry | Dead:
    return decide(job, policy, now_ms=now_ms, rand=0.5)


def test_a_failure_is_tried_again_after_its_wait() -> None:
    assert verdict() == Retry(NOW + 10_000, Reason.ERROR)


def test_a_task_that_rejects_its_job_is_believed() -> None:
    assert verdict(replace(FAILED, reason=Reason.REJECTED, again=False)) == Dead(Reason.REJECTED)
    assert verdict(replace(FAILED, reason=Reason.REJECTED, again=True)) == Retry(
        NOW + 10_000, Reason.REJECTED
    )


@pytest.mark.parametrize("reason", UNKNOWN)
def test_what_must_not_run_twice_is_not_tried_again_when_nobody_knows_what_it_did(reason: Reason) -> None:
    once = replace(FAILED, reason=reason, effect=Effect.AT_MOST_ONCE)
    assert verdict(once) == Dead(Reason.UNKNOWN_OUTCOME)
    assert isinstance(verdict(replace(once, effect=Effect.IDEMPOTENT)), Retry)


def test_an_error_of_the_body_itself_is_known_also_for_what_must_not_run_twice() -> None:
    assert isinstance(verdict(replace(FAILED, effect=Effect.AT_MOST_ONCE)), Retry)


def test_a_retry_that_would_start_after_the_deadline_is_not_scheduled() -> None:
    assert verdict(replace(FAILED, deadline_ms=NOW + 10_000)) == Dead(Reason.DEADLINE)
    assert isinstance(verdict(replace(FAILED, deadline_ms=NOW + 10_001)), Retry)


def test_the_time_of_the_whole_step_counts_from_its_first_entry() -> None:
    short = replace(POLICY, step_timeout=15)
    assert isinstance(verdict(policy=short), Retry)
    assert verdict(replace(FAILED, created_ms=NOW - 5_000), short) == Dead(Reason.STEP_TIMEOUT)


def test_the_window_counts_from_the_first_failure() -> None:
    assert isinstance(verdict(replace(FAILED, first_failed_ms=NOW - 50_000)), Retry)
    assert verdict(replace(FAILED, first_failed_ms=NOW - 50_001)) == Dead(Reason.RETRY_WINDOW)


def test_a_poison_job_ends_before_its_retries_are_used() -> None:
    lost = replace(FAILED, reason=Reason.WORKER_LOST, crashes=4)
    assert verdict(lost) == Dead(Reason.CRASH_LOOP)
    assert isinstance(verdict(replace(lost, crashes=3)), Retry)
    assert isinstance(verdict(replace(lost, reason=Reason.ERROR)), Retry), "crashes are not failures"


def test_max_retries_are_extra_attempts() -> None:
    assert isinstance(verdict(replace(FAILED, charged=2)), Retry)
    assert verdict(replace(FAILED, charged=3)) == Dead(Reason.MAX_RETRIES)
    assert verdict(policy=replace(POLICY, max_retries=0)) == Dead(Reason.MAX_RETRIES)


def test_a_task_names_its_own_instant_and_the_bounds_still_hold() -> None:
    asked = replace(FAILED, reason=Reason.RETRY_REQUESTED, not_before_ms=NOW + 3_000)
    assert verdict(asked) == Retry(NOW + 3_000, Reason.RETRY_REQUESTED)
    assert verdict(replace(asked, not_before_ms=NOW - 3_000)) == Retry(NOW, Reason.RETRY_REQUESTED)
    assert verdict(replace(asked, not_before_ms=NOW + 60_001)) == Dead(Reason.RETRY_WINDOW)


def test_infinite_bounds_bind_nobody() -> None:
    free = replace(POLICY, window=inf, step_timeout=inf)
    assert isinstance(verdict(replace(FAILED, first_failed_ms=0, created_ms=0), free), Retry)


@given(
    charged=st.integers(0, 10),
    crashes=st.integers(0, 10),
    reason=st.sampled_from(Reason),
    effect=st.sampled_from(Effect),
    deadline=st.integers(0, 2 * NOW),
    wish=st.integers(0, 2 * NOW),
    rand=st.floats(0, 1, exclude_max=True),
)
def test_no_retry_starts_in_the_past_or_beyond_a_bound(
    charged: int, crashes: int, reason: Reason, effect: Effect, deadline: int, wish: int, rand: float
) -> None:
    job = replace(
        FAILED,
        charged=charged,
        crashes=crashes,
        reason=reason,
        effect=effect,
        deadline_ms=deadline,
        not_before_ms=wish,
    )
    match decide(job, POLICY, now_ms=NOW, rand=rand):
        case Retry(at_ms, _):
            assert NOW <= at_ms <= NOW + 60_000
            assert not deadline or at_ms < deadline
            assert charged <= POLICY.max_retries
            assert not (effect is Effect.AT_MOST_ONCE and reason in UNKNOWN)
        case Dead(why):
            assert why is not Reason.NONE


def test_a_decision_in_words() -> None:
    assert word(Retry(5, Reason.ERROR)) == "retry at 5 after error"
    assert word(Dead(Reason.MAX_RETRIES)) == "dead: max_retries"
