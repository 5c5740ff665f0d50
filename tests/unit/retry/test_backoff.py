"""Waits before a retry, held to the agreed answers in cases/retry.json."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.backoff import Backoff, Jitter, RetryPolicy, delay, full_delay

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "retry.json").read_text("utf-8"))[
    "backoff_without_jitter"
]

policies = st.builds(
    RetryPolicy,
    kind=st.sampled_from(Backoff),
    interval=st.floats(0.001, 1e6),
    base=st.floats(0.001, 1e3),
    multiplier=st.floats(1, 100),
    cap=st.floats(1e3, 1e6),
    jitter=st.sampled_from(Jitter),
)


def policy_of(case: dict[str, Any]) -> RetryPolicy:
    return RetryPolicy(**{**case["policy"], "kind": Backoff(case["policy"]["kind"]), "jitter": Jitter.NONE})


@pytest.mark.parametrize("case", [case for case in CASES if "delays" in case])
def test_agreed_delays(case: dict[str, Any]) -> None:
    policy = policy_of(case)
    assert [full_delay(policy, n + 1) for n in range(len(case["delays"]))] == case["delays"]


@pytest.mark.parametrize("case", [case for case in CASES if "retry" in case])
def test_agreed_single_delays(case: dict[str, Any]) -> None:
    assert full_delay(policy_of(case), case["retry"]) == case["delay"]


def test_the_first_retry_is_number_one() -> None:
    with pytest.raises(ValueError, match="the first one is 1"):
        full_delay(RetryPolicy(), 0)


@given(policy=policies, retry=st.integers(1, 10**9))
def test_no_number_of_retries_overflows_or_exceeds_the_cap(policy: RetryPolicy, retry: int) -> None:
    found = full_delay(policy, retry)
    assert isfinite(found)
    assert found == policy.interval if policy.kind is Backoff.FIXED else found <= policy.cap


@given(policy=policies, retry=st.integers(1, 1000))
def test_waits_never_shrink(policy: RetryPolicy, retry: int) -> None:
    assert full_delay(policy, retry) <= full_delay(policy, retry + 1) * (1 + 1e-9)


@given(policy=policies, retry=st.integers(1, 100), rand=st.floats(0, 1, exclude_max=True))
def test_jitter_only_shortens(policy: RetryPolicy, retry: int, rand: float) -> None:
    whole, found = full_delay(policy, retry), delay(policy, retry, rand)
    least = {Jitter.NONE: whole, Jitter.EQUAL: whole / 2, Jitter.FULL: 0.0}[policy.jitter]
    assert least <= found <= whole
