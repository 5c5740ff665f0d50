"""How long to wait before a retry. Pure: chance is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Backoff(Enum):
    """How the wait before a retry grows."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


class Jitter(Enum):
    """How much of the wait before a retry is chance: half, all, nothing."""

    EQUAL = "equal"
    FULL = "full"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """What may be tried again, how often and how soon. Times in seconds; infinity = no bound.

    max_retries: extra attempts that are charged (3 means 4 attempts). max_crashes: attempts that may end with the loss
    of their worker. window: from the first failure. step_timeout: of the whole job, from its first entry.
    """

    kind: Backoff = Backoff.EXPONENTIAL
    interval: float = 2.0
    base: float = 2.0
    multiplier: float = 2.0
    cap: float = 30.0
    jitter: Jitter = Jitter.EQUAL
    max_retries: int = 3
    max_crashes: int = 3
    window: float = 86_400.0
    step_timeout: float = 86_400.0


def full_delay(policy: RetryPolicy, retry: int) -> float:
    """Seconds before the retry of that number (1 = the first), without chance. No number of retries overflows.

    ValueError for a number below 1.
    """
    if retry < 1:
        raise ValueError(f"retry {retry}: the first one is 1")
    if policy.kind is Backoff.FIXED:
        return policy.interval
    growth = (retry - 1) * math.log(policy.multiplier)
    if growth >= math.log(policy.cap) - math.log(
        policy.base
    ):  # compared as logarithms: the power may be too large
        return policy.cap
    return min(policy.cap, policy.base * policy.multiplier ** (retry - 1))


def delay(policy: RetryPolicy, retry: int, rand: float) -> float:
    """Seconds before the retry of that number, with its jitter. rand: evenly drawn from [0, 1)."""
    whole = full_delay(policy, retry)
    match policy.jitter:
        case Jitter.NONE:
            return whole
        case Jitter.FULL:
            return whole * rand
        case Jitter.EQUAL:
            return whole / 2 + whole / 2 * rand
