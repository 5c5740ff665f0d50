"""Durations, sizes and rates as people write them, and their canonical spelling. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, gcd, isfinite

#: one unit of a bucket is counted as this many micro-units, so that `500/m` stays exact
MICRO = 1_000_000

#: Lua counts in doubles: integers stay exact below this
LUA_INTEGER_LIMIT = 2**53

_DURATION_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_RATE_MS = {unit: ms for unit, ms in _DURATION_MS.items() if unit != "ms"}

_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)", re.ASCII)
_SIZE_TEXT = re.compile(r"(\d{1,15})(B|KB|MB|GB|KiB|MiB|GiB|TiB)", re.ASCII)
_RATE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)/(s|m|h|d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rate:
    """`micro` micro-units every `per_ms` ms, in lowest terms: `500/m` is 25000 micro-units per 3 ms, exactly."""

    micro: int
    per_ms: int

    @property
    def per_second(self) -> Fraction:
        """Whole units per second, exactly."""
        return Fraction(self.micro * 1_000, self.per_ms * MICRO)

    @property
    def second_worth(self) -> int:
        """What one second gives, rounded up, at least 1: the burst of a rate that names none."""
        return max(1, ceil(self.per_second))

    @property
    def burst_limit(self) -> int:
        """Buckets below this many units refill in integers that Lua's doubles keep exact."""
        return LUA_INTEGER_LIMIT // (MICRO * self.per_ms)

    def __str__(self) -> str:
        for unit, ms in _RATE_MS.items():
            count = Fraction(self.micro * ms, self.per_ms * MICRO)
            if (count * MICRO).denominator == 1:
                return f"{_decimal(count)}/{unit}"
        raise AssertionError(
            f"not a rate that can be written: {self!r}"
        )  # pragma: no cover - parse makes no such value


def parse_rate(text: str) -> Rate:
    """`100/s`, `500/m`, `0.5/h`, `10/d`. Raises ValueError."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    micro, per_ms = int(Decimal(match[1]) * MICRO), _RATE_MS[match[2]]
    if micro == 0:
        raise ValueError(text)
    divisor = gcd(micro, per_ms)
    return Rate(micro // divisor, per_ms // divisor)


def parse_duration(raw: str | int | float) -> float:
    """Seconds from `250ms`, `30s`, `10m`, `2h`, `3d` or a number of seconds. Raises ValueError."""
    if isinstance(raw, int | float):
        if not isfinite(raw) or raw < 0:
            raise ValueError(raw)
        return float(raw)
    match = _DURATION.fullmatch(raw)
    if match is None:
        raise ValueError(raw)
    return float(Decimal(match[1]) * _DURATION_MS[match[2]] / 1_000)


def format_duration(seconds: float) -> str | float:
    """The shortest spelling with the same value; the plain number where no unit gives it exactly."""
    ms = Fraction(seconds) * 1_000
    if ms.denominator != 1:
        ms = Fraction(round(ms))
        if float(ms / 1_000) != seconds:
            return seconds
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(int(ms), _DURATION_MS[unit])
        if rest == 0 and (count or unit == "s"):
            return f"{count}{unit}"
    return f"{int(ms)}ms"


def parse_size(raw: str | int) -> int:
    """Bytes from `256MiB`, `10KB`, `512B` or a number of bytes. Raises ValueError."""
    if isinstance(raw, int):
        if raw < 0:
            raise ValueError(raw)
        return raw
    match = _SIZE_TEXT.fullmatch(raw)
    if match is None:
        raise ValueError(raw)
    return int(match[1]) * _SIZE[match[2]]


def format_size(size: int) -> str:
    """The shortest spelling with the same value, in binary units."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        count, rest = divmod(size, _SIZE[unit])
        if count and rest == 0:
            return f"{count}{unit}"
    return f"{size}B"


def _decimal(value: Fraction) -> str:
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
