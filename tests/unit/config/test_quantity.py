"""Durations, sizes, rates."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.quantity import (
    Rate,
    format_duration,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("30s", 30),
        ("10m", 600),
        ("2h", 7200),
        ("3d", 259_200),
        ("0.5s", 0.5),
        (15, 15),
        (0.25, 0.25),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "15", "15 s", "s", "-1s", "1e3s", "1w", "1S", "١s", "1s ", "1ss", -1, float("nan")]
)
def test_no_durations(text: str | float) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_a_duration_in_milliseconds_is_written_and_read_exactly(ms: int) -> None:
    assert parse_duration(format_duration(ms / 1000)) == ms / 1000


@given(st.floats(0, 1e9, allow_nan=False))
def test_any_duration_is_written_and_read_exactly(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_the_shortest_spelling() -> None:
    assert [format_duration(value) for value in (0, 0.25, 1.5, 60, 90, 86_400)] == [
        "0s",
        "250ms",
        "1500ms",
        "1m",
        "90s",
        "1d",
    ]
    assert [format_size(value) for value in (0, 1000, 1024, 2**20, 2**40)] == [
        "0B",
        "1000B",
        "1KiB",
        "1MiB",
        "1TiB",
    ]


@pytest.mark.parametrize(
    ("text", "size"),
    [("0B", 0), ("10KB", 10_000), ("64KiB", 65_536), ("256MiB", 2**28), ("2GiB", 2**31), (7, 7)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "1", "1 MiB", "1mib", "1.5MiB", "-1B", -1])
def test_no_sizes(text: str | int) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "micro", "per_ms"),
    [
        ("100/s", 100_000, 1),
        ("500/m", 25_000, 3),
        ("10/h", 25, 9),
        ("7/h", 35, 18),
        ("0.5/s", 500, 1),
        ("1/d", 5, 432),
    ],
)
def test_rates_are_exact(text: str, micro: int, per_ms: int) -> None:
    rate = parse_rate(text)
    assert (rate.micro, rate.per_ms) == (micro, per_ms)
    unit_ms = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[text[-1]]
    assert rate.per_second == Fraction(text[:-2]) * 1_000 / unit_ms


@pytest.mark.parametrize(
    "text", ["", "100", "0/s", "0.0000001/s", "-1/s", "100/ms", "100 /s", "100/S", "inf/s"]
)
def test_no_rates(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rate(text)


@given(st.decimals(min_value="0.000001", max_value=10**9, places=6), st.sampled_from("smhd"))
def test_a_rate_is_written_and_read_exactly(count: object, unit: str) -> None:
    rate = parse_rate(f"{count}/{unit}")
    assert parse_rate(str(rate)) == rate


def test_the_burst_that_stays_exact_in_lua() -> None:
    assert Rate(micro=100_000, per_ms=1).burst_limit == 2**53 // 10**6
    assert parse_rate("7/h").burst_limit == 2**53 // (18 * 10**6)
    assert parse_rate("3/m").second_worth == 1
    assert parse_rate("90/m").second_worth == 2
