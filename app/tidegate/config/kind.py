"""What a setting may be: one object per kind of value, which parses, names what it expects, and describes itself.

Pure. A kind parses what TOML gives (`parse`), turns the text of an environment variable into that (`from_text`),
writes a value back in its canonical spelling (`show`) and gives its JSON Schema (`schema`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, cast

from tidegate.config.quantity import (
    Rate,
    format_duration,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

NAME_BYTES = 256
TEN_YEARS = 3650 * 86_400.0
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Mismatch(Exception):
    """The value is not of the kind. `at` points into the value (`[1]`), `got` is the part that is wrong."""

    def __init__(self, expected: str, got: object, at: str = "", choices: tuple[str, ...] = ()) -> None:
        super().__init__(expected)
        self.expected, self.got, self.at, self.choices = expected, got, at, choices


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value. `read` raises ValueError for what is no such value; `expected` then says what is."""

    expected: str
    read: Callable[[Any], T]
    show: Callable[[T], Any]
    schema: Mapping[str, Any]
    from_text: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    example: str = ""

    def parse(self, raw: object) -> T:
        """The value. Raises Mismatch."""
        try:
            return self.read(raw)
        except ValueError:
            hint = f" (such as {self.example})" if self.example else ""
            raise Mismatch(self.expected + hint, raw, choices=self.choices) from None


def _typed(raw: object, *types: type) -> Any:
    if not isinstance(raw, types) or (isinstance(raw, bool) and bool not in types):
        raise ValueError(raw)
    return raw


def _same(value: T) -> T:
    return value


def text(expected: str = "text", pattern: str = r"(?s).*", limit: int = 4096) -> Kind[str]:
    """Text that matches `pattern` whole and has at most `limit` bytes."""
    compiled = re.compile(pattern)

    def read(raw: Any) -> str:
        value = cast(str, _typed(raw, str))
        if not compiled.fullmatch(value) or len(value.encode()) > limit:
            raise ValueError(raw)
        return value

    shape = {} if pattern == r"(?s).*" else {"pattern": f"^(?:{pattern})$".replace("(?s)", "")}
    return Kind(expected, read, _same, {"type": "string", **shape})


def name(what: str = "a name") -> Kind[str]:
    """A name of a user's thing: any Unicode text of 1 to 256 bytes (DESIGN §4)."""
    return text(f"{what} of 1 to {NAME_BYTES} bytes", r"(?s).+", NAME_BYTES)


def flag() -> Kind[bool]:
    """true or false."""
    words = {"true": True, "false": False}
    return Kind(
        "true or false",
        lambda raw: cast(bool, _typed(raw, bool)),
        _same,
        {"type": "boolean"},
        from_text=lambda given: words.get(given.strip().lower(), given),
    )


def integer(minimum: int, maximum: int = 10**9) -> Kind[int]:
    """A whole number from `minimum` to `maximum`."""

    def read(raw: Any) -> int:
        value = cast(int, _typed(raw, int))
        if not minimum <= value <= maximum:
            raise ValueError(raw)
        return value

    return Kind(
        f"a whole number from {minimum:,} to {maximum:,}",
        read,
        _same,
        {"type": "integer", "minimum": minimum, "maximum": maximum},
        from_text=_number_or_text,
    )


def number(minimum: float, maximum: float) -> Kind[float]:
    """A number from `minimum` to `maximum`."""

    def read(raw: Any) -> float:
        value = float(_typed(raw, int, float))
        if not minimum <= value <= maximum:  # also refuses nan
            raise ValueError(raw)
        return value

    return Kind(
        f"a number from {minimum:,} to {maximum:,}",
        read,
        lambda value: int(value) if value == int(value) else value,
        {"type": "number", "minimum": minimum, "maximum": maximum},
        from_text=_number_or_text,
    )


def duration(minimum: float = 0.0, maximum: float = TEN_YEARS) -> Kind[float]:
    """A duration in seconds, from `minimum` to `maximum` seconds."""

    def read(raw: Any) -> float:
        value = parse_duration(_typed(raw, str, int, float))
        if not minimum <= value <= maximum:
            raise ValueError(raw)
        return value

    bounds = f" of at least {format_duration(minimum)}" if minimum else ""
    if maximum != TEN_YEARS:
        bounds += (
            f" and at most {format_duration(maximum)}"
            if bounds
            else f" of at most {format_duration(maximum)}"
        )
    return Kind(
        f"a duration{bounds}",
        read,
        format_duration,
        {"type": ["string", "number"], "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$", "minimum": minimum},
        from_text=_number_or_text,
        example='"250ms", "30s", "10m", "2h", "3d" or a number of seconds',
    )


def size(minimum: int = 0) -> Kind[int]:
    """A number of bytes."""

    def read(raw: Any) -> int:
        value = parse_size(_typed(raw, str, int))
        if not minimum <= value < 2**53:
            raise ValueError(raw)
        return value

    bounds = f" of at least {format_size(minimum)}" if minimum else ""
    return Kind(
        f"a size{bounds}",
        read,
        format_size,
        {"type": ["string", "integer"], "pattern": r"^\d+(B|KB|MB|GB|KiB|MiB|GiB|TiB)$", "minimum": minimum},
        from_text=_number_or_text,
        example='"512B", "64KiB", "256MiB", "2GiB" or a number of bytes',
    )


def frequency() -> Kind[Rate]:
    """So many per second, minute, hour or day."""
    return Kind(
        "a rate above zero",
        lambda raw: parse_rate(cast(str, _typed(raw, str))),
        str,
        {"type": "string", "pattern": r"^\d+(\.\d+)?/(s|m|h|d)$"},
        example='"100/s", "500/m", "10/h" or "0.5/s"',
    )


def choice(enum: type[E], note: str = "") -> Kind[E]:
    """One member of an enum, written as its value; `note` says why others are missing."""
    words = tuple(str(member.value) for member in enum)
    return Kind(
        one_of(words) + (f" ({note})" if note else ""),
        lambda raw: enum(_typed(raw, str)),
        lambda member: member.value,
        {"enum": list(words)},
        choices=words,
    )


def one_of(words: tuple[str, ...]) -> str:
    """`one of "a", "b" or "c"`."""
    shown = [quoted(word) for word in words]
    return f"one of {', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]


def dotted(path: tuple[str, ...]) -> str:
    """The path as TOML writes it: `tasks."reports.fetch".queue`."""
    return ".".join(key if BARE_KEY.fullmatch(key) else quoted(key) for key in path)


def quoted(text: str) -> str:
    """The text as a basic string of TOML, which is JSON's but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number_or_text(given: str) -> int | float | str:
    for convert in (int, float):
        try:
            return convert(given)
        except ValueError:
            continue
    return given
