"""A cron expression: five fields (six with `cron_seconds`), parsed once into numbers (DESIGN §7, "Dialect")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidegate.config.schedule import CronSeconds
from tidegate_beat.semantics import field as fields
from tidegate_beat.semantics.day import DayRule
from tidegate_beat.semantics.error import InvalidSchedule, shown
from tidegate_beat.semantics.field import Field, Name

LONGEST = 256

_SPACE = " \t\n\r\f\v"
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ORDER = (Name.MINUTE, Name.HOUR, Name.DAY_OF_MONTH, Name.MONTH, Name.DAY_OF_WEEK)
_COUNTED = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Expression:
    """second: None in an expression of five fields, which fires at second 0."""

    second: Field | None
    minute: Field
    hour: Field
    days: DayRule
    seconds_at: CronSeconds | None

    @property
    def text(self) -> str:
        """The canonical spelling: names, `H` and lists as numbers. It parses to an equal expression with the same
        `cron_seconds` (if it is not over 256 characters, as a list of odd numbers can be), and two expressions of one
        spelling fire at the same times."""
        five = " ".join(
            part.text
            for part in (
                self.minute,
                self.hour,
                self.days.day_of_month,
                self.days.month,
                self.days.day_of_week,
            )
        )
        if self.second is None:
            return five
        return (
            f"{self.second.text} {five}"
            if self.seconds_at is CronSeconds.FIRST
            else f"{five} {self.second.text}"
        )

    @property
    def names_fixed_times(self) -> bool:
        """Whether it names times of a day, rather than a rhythm; decides what `auto` means for DST."""
        return not self.minute.starred and not self.hour.starred and not self.hour.full


def parse(
    text: str, *, schedule_id: str | None = None, cron_seconds: CronSeconds | None = None
) -> Expression:
    """The expression that `text` spells.

    schedule_id: what `H` is drawn from; cron_seconds: where a sixth field stands, which must then be there.
    Raises InvalidSchedule, also for what can never fire.
    """
    parts = _split(text)
    second: Field | None = None
    if parts[0].startswith("@"):
        parts = _nickname(parts)
        cron_seconds = None
    elif cron_seconds is not None:
        _count(parts, 6)
        at = 0 if cron_seconds is CronSeconds.FIRST else 5
        second = fields.parse(Name.SECOND, parts.pop(at), schedule_id)
    else:
        _count(parts, 5)
    minute, hour, day_of_month, month, day_of_week = (
        fields.parse(name, part, schedule_id) for name, part in zip(_ORDER, parts, strict=True)
    )
    days = DayRule(day_of_month, month, day_of_week)
    if not days.ever():
        raise InvalidSchedule("cron", "never fires: no year has such a day", "check the day and month fields")
    return Expression(second, minute, hour, days, cron_seconds)


def _split(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise InvalidSchedule("cron", f"too long ({len(text)} characters)", f"at most {LONGEST} are allowed")
    for character in text:
        if character.isascii():
            continue
        if character.isspace():
            raise InvalidSchedule("cron", f"{character!a} is no separator", "ASCII white space only")
        hint = "ASCII digits only" if character.isdigit() else "ASCII digits only, and ASCII letters"
        raise InvalidSchedule("cron", f"{character!a} is not allowed", hint)
    parts = [part for part in re.split(f"[{_SPACE}]+", text) if part]
    if not parts:
        raise InvalidSchedule("cron", "empty", "write five fields: minute hour day month weekday")
    if "=" in parts[0]:
        raise InvalidSchedule(
            "cron", f"{shown(parts[0])} is not in the dialect", "use timezone = in the schedule"
        )
    return parts


def _nickname(parts: list[str]) -> list[str]:
    word = parts[0].lower()
    if word == "@every":
        raise InvalidSchedule("cron", "@every is not in the dialect", 'use every = "90s" instead of cron')
    if len(parts) == 1 and word in _NICKNAMES:
        return _NICKNAMES[word].split()
    what = f"{shown(' '.join(parts))} is not in the dialect"
    raise InvalidSchedule("cron", what, f"the names are {', '.join(_NICKNAMES)}")


def _count(parts: list[str], wanted: int) -> None:
    count = len(parts)
    if count == wanted:
        return
    given = _COUNTED[count] if count < len(_COUNTED) else str(count)
    what = f"{given} field{'' if count == 1 else 's'} instead of {_COUNTED[wanted]}"
    if count == 6:
        raise InvalidSchedule("cron", what, 'six fields need cron_seconds = "first" or "last"')
    if wanted == 6:
        raise InvalidSchedule(
            "cron", what, "with cron_seconds there are six; remove it, or add the second field"
        )
    raise InvalidSchedule("cron", what, "write minute hour day month weekday")
