"""One field of a cron expression: its items, and its canonical spelling (DESIGN §7, "Dialect")."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tidegate_beat.semantics.error import InvalidSchedule, shown

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

_H = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?")
_NTH = re.compile(r"([A-Z]{3}|\d+)#(\d+)")
_LAST_WEEKDAY = re.compile(r"L([A-Z]{3}|\d+)")
_QUARTZ_LAST = re.compile(r"([A-Z]{3}|\d+)L")
_NEAREST = re.compile(r"(\d+)W")

#: the last day on which `W` is clear: the nearest working day of 29W to 31W depends on the month having that day
LAST_NEAREST = 28


class Name(Enum):
    """The fields; the value is how messages call them."""

    SECOND = "second field"
    MINUTE = "minute field"
    HOUR = "hour field"
    DAY_OF_MONTH = "day-of-month field"
    MONTH = "month field"
    DAY_OF_WEEK = "day-of-week field"


_BOUNDS = {
    Name.SECOND: (0, 59),
    Name.MINUTE: (0, 59),
    Name.HOUR: (0, 23),
    Name.DAY_OF_MONTH: (1, 31),
    Name.MONTH: (1, 12),
    Name.DAY_OF_WEEK: (0, 6),
}
_WORDS = {
    Name.MONTH: {word: number for number, word in enumerate(_MONTHS, 1)},
    Name.DAY_OF_WEEK: {word: number for number, word in enumerate(_DAYS)},
}


class Mark(Enum):
    """Items that name a day by the month it falls in."""

    LAST_DAY = "L"
    LAST_WEEKDAY = "L5"
    NTH_WEEKDAY = "1#2"
    NEAREST_WORKDAY = "15W"


@dataclass(frozen=True, slots=True, order=True)
class Marked:
    """One such item; `text` is its canonical spelling."""

    text: str
    number: int
    nth: int
    mark: Mark


@dataclass(frozen=True, slots=True)
class Field:
    """values: the numbers, ascending (0 = Sunday); starred: the field is spelled with a leading `*` (or `?`), which
    decides the day rule and what `auto` means; text: canonical spelling, which parses to an equal field."""

    name: Name
    values: tuple[int, ...]
    marks: tuple[Marked, ...]
    starred: bool
    text: str

    @property
    def full(self) -> bool:
        low, high = _BOUNDS[self.name]
        return len(self.values) == high - low + 1


def parse(name: Name, text: str, schedule_id: str | None = None) -> Field:
    """The field that `text` spells.

    schedule_id: what `H` is drawn from. Raises InvalidSchedule.
    """
    items = [_item(name, part, schedule_id) for part in text.upper().split(",")]
    values = sorted({value for item in items for value in item.values})
    marks = sorted({mark for item in items for mark in item.marks})
    starred = items[0].starred
    # A star that does not lead has no meaning of its own, so it is spelled as the numbers it stands for.
    stars = sorted({item.text for item in items if item.starred}) if starred else []
    rest = {value for item in items if not (starred and item.starred) for value in item.values}
    if "*" in stars:
        stars, rest = ["*"], set()
    spelled = [*stars, *_runs(sorted(rest)), *(mark.text for mark in marks)]
    return Field(name, tuple(values), tuple(marks), starred, ",".join(spelled))


@dataclass(frozen=True, slots=True)
class _Item:
    values: tuple[int, ...] = ()
    marks: tuple[Marked, ...] = ()
    starred: bool = False
    text: str = ""


def _item(name: Name, part: str, schedule_id: str | None) -> _Item:
    low, high = _BOUNDS[name]
    if not part:
        raise _refused(name, "empty element in the list", "remove the extra comma")
    if part.count("/") > 1:
        raise _refused(name, f"double step in {shown(part)}", "write one step, such as */10")
    if part == "R" or part.startswith(("R(", "R/")):
        raise _refused(name, "R is not reproducible", "write H, which is drawn once from the schedule's id")
    if part.startswith("H"):
        return _Item(_hashed(name, part, schedule_id))
    marked = _marked(name, part)
    if marked is not None:
        return _Item(marks=(marked,))
    body, slash, step_text = part.partition("/")
    step = _step(name, step_text) if slash else 1
    if body == "?" and name not in (Name.DAY_OF_MONTH, Name.DAY_OF_WEEK):
        raise _refused(name, "? stands only for days", "write *")
    if body == "?" and slash:
        raise _refused(name, f"{shown(part)} is not in the dialect", f"write */{step}")
    if body in ("*", "?"):
        return _Item(tuple(range(low, high + 1, step)), (), True, "*" if step == 1 else f"*/{step}")
    first_text, dash, last_text = body.partition("-")
    if dash and not first_text:
        raise _refused(name, f"{shown(body)} is out of range", _allowed(name))
    first = _number(name, first_text)
    if not dash:
        return _Item(tuple(range(first, high + 1, step)) if slash else (first,))
    if name is Name.DAY_OF_WEEK and body == "0-7":
        # Read as numbers it would be Sunday to Sunday, which is the single day; everyone means the week.
        return _Item(tuple(range(low, high + 1, step)))
    return _Item(_range(name, first, _number(name, last_text), step))


def _range(name: Name, first: int, last: int, step: int) -> tuple[int, ...]:
    """The numbers of a range; it may wrap around the end of its field, and an equal range is the single value."""
    if first == last:
        return (first,)
    low, high = _BOUNDS[name]
    size = high - low + 1
    end = last if first < last else last + size
    return tuple((value - low) % size + low for value in range(first, end + 1, step))


def _number(name: Name, text: str) -> int:
    low, high = _BOUNDS[name]
    words = _WORDS.get(name, {})
    if text in words:
        return words[text]
    if text.isdigit():
        if len(text) > 4:
            raise _refused(name, f"{shown(text)} is out of range", _allowed(name))
        value = int(text)
        if name is Name.DAY_OF_WEEK and value == 7:
            return 0
        if not low <= value <= high:
            raise _refused(name, f"{text} is out of range", _allowed(name))
        return value
    if name is Name.DAY_OF_MONTH and text.startswith(("L", "W")):
        raise _refused(
            name,
            f"{shown(text)} is not in the dialect",
            "write L for the last day, 15W for a nearest working day",
        )
    if words and text.isalpha():
        raise _refused(name, f"{shown(text)} is no name", f"use three-letter names: {', '.join(words)}")
    raise _refused(name, f"{shown(text)} is not a number", _allowed(name))


def _step(name: Name, text: str) -> int:
    low, high = _BOUNDS[name]
    if not text.isdigit():
        raise _refused(name, f"step {shown(text)} is not a number", "write a step such as */10")
    if not text.strip("0"):
        raise _refused(name, "zero step", "write a step of 1 or more")
    if len(text) > 4 or int(text) > high - low + 1:
        raise _refused(
            name,
            f"step larger than the field ({shown(text)}, {high - low + 1} values)",
            "a step does not reach into the next hour or day; for a longer interval use every =",
        )
    return int(text)


def _hashed(name: Name, part: str, schedule_id: str | None) -> tuple[int, ...]:
    """`H`, `H/15`, `H(0-29)`, `H(0-29)/10`: numbers drawn from the schedule's id, the same for ever."""
    found = _H.fullmatch(part)
    if found is None:
        raise _refused(name, f"{shown(part)} is not in the dialect", "write H, H/15, H(0-29) or H(0-29)/10")
    if schedule_id is None:
        raise _refused(
            name, "H needs a schedule's id to be drawn from", "name the schedule, or write a number"
        )
    first_text, last_text, step_text = found.groups()
    low, high = _BOUNDS[name]
    # A drawn day exists in each month, or the schedule would skip months by bad luck.
    first, last = (low, 28 if name is Name.DAY_OF_MONTH else high)
    if first_text is not None:
        first, last = _number(name, first_text), _number(name, last_text)
        if first > last:
            raise _refused(name, f"{shown(part)} is an empty range", "write the smaller number first")
    step = _step(name, step_text) if step_text is not None else 0
    if step > last - first + 1:
        raise _refused(
            name, f"step larger than the field ({shown(part)})", "write a step that fits its range"
        )
    digest = hashlib.sha256(f"{name.name}\0{schedule_id}".encode()).digest()
    drawn = int.from_bytes(digest[:8], "big")
    if not step:
        return (first + drawn % (last - first + 1),)
    return tuple(range(first + drawn % step, last + 1, step))


def _marked(name: Name, part: str) -> Marked | None:
    """L, L5, 1#2 and 15W; None if the item is none of them."""
    if name is Name.DAY_OF_MONTH:
        if part == "L":
            return Marked("L", 0, 0, Mark.LAST_DAY)
        if part in ("LW", "WL"):
            raise _refused(
                name,
                f"{part} is not in the dialect",
                "use L with a business-day calendar and roll = previous",
            )
        if part.startswith("L"):
            raise _refused(
                name,
                f"{shown(part)} is not in the dialect",
                "write L for the last day, or the days as numbers",
            )
        if (found := _NEAREST.fullmatch(part)) is not None:
            day = _number(name, found[1])
            if day > LAST_NEAREST:
                raise _refused(
                    name, f"W above {LAST_NEAREST} is ambiguous", "use L with a business-day calendar, or 28W"
                )
            return Marked(f"{day}W", day, 0, Mark.NEAREST_WORKDAY)
    if name is Name.DAY_OF_WEEK:
        if (found := _NTH.fullmatch(part)) is not None:
            day, nth = _number(name, found[1]), int(found[2][:3])
            if not 1 <= nth <= 5:
                what = "there is no sixth week in a month" if nth > 5 else "weeks count from 1"
                raise _refused(name, f"{shown(part)}: {what}", "write 1#1 to 1#5, or L1 for the last")
            return Marked(f"{day}#{nth}", day, nth, Mark.NTH_WEEKDAY)
        if (found := _QUARTZ_LAST.fullmatch(part)) is not None:
            raise _refused(
                name,
                f"{shown(part)} is not in the dialect",
                f"write L{found[1]} for the last such day of the month",
            )
        if (found := _LAST_WEEKDAY.fullmatch(part)) is not None:
            day = _number(name, found[1])
            return Marked(f"L{day}", day, 0, Mark.LAST_WEEKDAY)
        if part == "L":
            raise _refused(
                name,
                "L alone is not in the dialect here",
                "write L5 for the last Friday, or 6 for each Saturday",
            )
    return None


def _runs(values: list[int]) -> Iterable[str]:
    """Ascending numbers as short as they can be said: `1-5`, `0-45/15`, `3`."""
    if len(values) > 2:
        step = values[1] - values[0]
        if step > 1 and values == list(range(values[0], values[-1] + 1, step)):
            return [f"{values[0]}-{values[-1]}/{step}"]
    spelled: list[str] = []
    start = 0
    for index in range(1, len(values) + 1):
        if index == len(values) or values[index] != values[index - 1] + 1:
            run = values[start:index]
            spelled += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(value) for value in run]
            start = index
    return spelled


def _allowed(name: Name) -> str:
    low, high = _BOUNDS[name]
    return f"allowed are {low} to {7 if name is Name.DAY_OF_WEEK else high}"


def _refused(name: Name, what: str, hint: str) -> InvalidSchedule:
    return InvalidSchedule(name.value, what, hint)
