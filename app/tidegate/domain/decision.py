"""What becomes of a failed attempt: the one place that decides about retries (DESIGN §5). Pure.

The order of the checks is the safety fence: what must not run again is dead before anything is computed, and a retry
that could not start in time is never scheduled.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import assert_never

from tidegate.domain.backoff import RetryPolicy, delay
from tidegate.domain.job import Effect
from tidegate.domain.states import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """What is known when an attempt has failed. Instants in ms of the server's clock; 0 = none.

    charged, crashes: attempts so far, this one counted. again: a task's own word (`Reject`: False = never again).
    """

    reason: Reason
    effect: Effect
    charged: int
    crashes: int
    created_ms: int
    first_failed_ms: int
    deadline_ms: int = 0
    not_before_ms: int = 0
    again: bool | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again at that instant (ms)."""

    at_ms: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Dead:
    """Not by itself: a dead letter, with the reason."""

    reason: Reason


Decision = Retry | Dead

#: ends after which nobody knows what the body has done
_UNKNOWN = frozenset(
    {Reason.WORKER_LOST, Reason.ATTEMPT_TIMEOUT, Reason.SOFT_TIMEOUT, Reason.TERMINATED, Reason.MEMORY}
)
#: ends that took the worker's process with them
_CRASHES = frozenset({Reason.WORKER_LOST, Reason.MEMORY})


def decide(job: FailedAttempt, policy: RetryPolicy, *, now_ms: int, rand: float) -> Decision:
    """Retry or dead letter. rand: evenly drawn from [0, 1), for the jitter."""
    if job.again is False:
        return Dead(Reason.REJECTED)
    if job.effect is Effect.AT_MOST_ONCE and job.reason in _UNKNOWN:
        return Dead(Reason.UNKNOWN_OUTCOME)
    at_ms = _start(job, policy, now_ms, rand)
    if job.deadline_ms and at_ms >= job.deadline_ms:
        return Dead(Reason.DEADLINE)
    if at_ms >= job.created_ms + _ms(policy.step_timeout):
        return Dead(Reason.STEP_TIMEOUT)
    if at_ms > job.first_failed_ms + _ms(policy.window):
        return Dead(Reason.RETRY_WINDOW)
    if job.reason in _CRASHES and job.crashes > policy.max_crashes:
        return Dead(Reason.CRASH_LOOP)
    if job.charged > policy.max_retries:
        return Dead(Reason.MAX_RETRIES)
    return Retry(at_ms, job.reason)


def _start(job: FailedAttempt, policy: RetryPolicy, now_ms: int, rand: float) -> int:
    """The earliest instant of the next attempt: what the task asked for, else the backoff of its policy."""
    if job.not_before_ms:
        return max(now_ms, job.not_before_ms)
    return now_ms + round(delay(policy, max(1, job.charged), rand) * 1000)


def _ms(seconds: float) -> float:
    return inf if seconds == inf else round(seconds * 1000)


def word(decision: Decision) -> str:
    """The decision in one line, for a log."""
    match decision:
        case Retry(at_ms, reason):
            return f"retry at {at_ms} after {reason.value}"
        case Dead(reason):
            return f"dead: {reason.value}"
        case _:
            assert_never(decision)
