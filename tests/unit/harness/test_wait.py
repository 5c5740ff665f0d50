from __future__ import annotations

import pytest
from tests.harness.wait import quietly, wait_until


def test_returns_the_first_truthy_value() -> None:
    values = iter([0, "", [], "here"])
    assert wait_until(lambda: next(values), "a value", interval=0.001) == "here"


def test_fails_with_the_reason_and_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"the moon \(last value: 0\)"):
        wait_until(lambda: 0, "the moon", timeout=0.01, interval=0.001)


def test_a_reason_may_be_computed_at_the_end() -> None:
    seen: list[int] = []
    with pytest.raises(AssertionError, match="looked"):
        wait_until(lambda: seen.append(1), lambda: f"looked {len(seen)} times", timeout=0.01, interval=0.001)


def test_an_exception_is_a_failure_unless_expected() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 // 0, "never", timeout=1)
    with pytest.raises(AssertionError, match="never"):
        wait_until(quietly(lambda: 1 // 0, ZeroDivisionError), "never", timeout=0.01, interval=0.001)
