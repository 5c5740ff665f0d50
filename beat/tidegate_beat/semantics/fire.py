"""A logical fire time: an instant with its zone, in the text form of RFC 9557 (section 4.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum

from tidegate_beat.semantics.error import InvalidSchedule, shown
from tidegate_beat.semantics.zone import Zone

_TEXT = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,6})?)([Zz]|[+-]\d\d:\d\d)(?:\[!?([^\[\]=]+)\])?", re.ASCII
)
_MINUTE = timedelta(minutes=1)


class Note(Enum):
    """What daylight saving did to a fire."""

    NONE = ""
    GAP_END = "moved to the end of the gap"
    SHIFTED = "shifted by the gap"
    FOLD_FIRST = "first of two equal wall times"
    FOLD_SECOND = "second of two equal wall times"


@dataclass(frozen=True, slots=True, order=True)
class FireTime:
    """at: the instant, aware, UTC; fires compare as instants, whatever their zones. `str()` is the RFC 9557 form."""

    at: datetime
    zone: Zone = field(compare=False)
    note: Note = field(compare=False, default=Note.NONE)

    def __str__(self) -> str:
        local = self.at.astimezone(self.zone.info)
        if (local.utcoffset() or timedelta()) % _MINUTE:
            # RFC 3339 has no seconds in an offset (local mean times of old); Z says only the instant.
            return f"{self.at.replace(tzinfo=None).isoformat()}Z[{self.zone.name}]"
        return f"{local.isoformat()}[{self.zone.name}]"

    @staticmethod
    def parse(text: str) -> FireTime:
        """Reads what `str()` wrote. The offset decides: a time stored before the zone's rules changed stays the same
        instant, or the same fire would have two names. Raises InvalidSchedule."""
        instant, zone = _read(text, "fire time")
        if zone is None:
            raise InvalidSchedule(
                "fire time", f"{shown(text)} names no zone", "write it as 2026-03-08T09:00:00Z[UTC]"
            )
        return FireTime(instant, zone)


def instant(text: str, where: str) -> datetime:
    """The instant (aware, UTC) that a person wrote: RFC 3339, or RFC 9557 with an offset that is the zone's.

    where: the setting, for the message. Raises InvalidSchedule.
    """
    found, zone = _read(text, where)
    stated = text.partition("[")[0][-6:]
    if zone is not None and stated[0] in "+-" and str(FireTime(found, zone)).partition("[")[0][-6:] != stated:
        right = FireTime(found, zone)
        raise InvalidSchedule(
            where, f"{shown(text, 80)}: the zone has another offset then", f"that is {right}"
        )
    return found


def utc(value: datetime) -> datetime:
    """The instant in UTC. Raises ValueError for a naive time: a wall time names no instant."""
    if value.tzinfo is None:
        raise ValueError("an instant needs an offset: a naive datetime names none")
    return value.astimezone(UTC)


def _read(text: str, where: str) -> tuple[datetime, Zone | None]:
    found = _TEXT.fullmatch(text)
    if found is None:
        hint = "write an instant with its offset, such as 2026-03-08T09:00:00+08:00 or 2026-03-08T01:00:00Z"
        raise InvalidSchedule(where, f"{shown(text, 80)} is not an instant", hint)
    clock, offset, name = found.groups()
    zone = None if name is None else Zone.named(name)
    try:
        return datetime.fromisoformat(clock.upper() + offset.upper()).astimezone(UTC), zone
    except (ValueError, OverflowError) as error:
        raise InvalidSchedule(
            where, f"{shown(text, 80)} is not an instant", "check the date and the offset"
        ) from error
