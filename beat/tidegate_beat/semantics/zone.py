"""Time zones as stretches of constant offset, so that nothing has to ask whether a wall time exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tidegate_beat.semantics.error import InvalidSchedule, shown

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", re.ASCII)
#: files of the database that are not zones, or count other seconds
_NOT_ZONES = frozenset({"localtime", "Factory", "posixrules"})
_NOT_TREES = frozenset({"posix", "right"})

#: nobody has changed an offset twice within this time
_PROBE = timedelta(hours=6)
#: longer than any gap or fold (the longest was Samoa's 24 hours of 2011)
_MARGIN = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instants start ≤ u < end (naive UTC) at one offset from UTC.

    before, after: the offsets of the neighbours; equal to `offset` where the stretch was cut for want of a change.
    """

    start: datetime
    end: datetime
    offset: timedelta
    before: timedelta
    after: timedelta


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone of the IANA database, by its name; make it with `Zone.named`."""

    name: str
    info: ZoneInfo

    @staticmethod
    def named(name: str) -> Zone:
        """Raises InvalidSchedule for anything but an IANA name in its exact spelling."""
        first = name.partition("/")[0]
        if _NAME.fullmatch(name) is None or name in _NOT_ZONES or first in _NOT_TREES:
            raise _unknown(name)
        try:
            return Zone(name, ZoneInfo(name))
        except (KeyError, ValueError, OSError) as error:  # not there; not a zone file; a directory
            raise _unknown(name) from error

    def offset(self, instant: datetime) -> timedelta:
        """The offset from UTC at an instant (naive UTC)."""
        return _offset(self.info, instant)

    def stretch(self, instant: datetime) -> Stretch:
        """The stretch that an instant (naive UTC) lies in."""
        year = instant.year if instant >= _cut(self.name, instant.year) else instant.year - 1
        return next(found for found in _stretches(self.name, year) if instant < found.end)


def _unknown(name: str) -> InvalidSchedule:
    known = available_timezones() - _NOT_ZONES
    close = [zone for zone in known if zone.lower() == name.strip().lower()] or get_close_matches(
        name, known, 1
    )
    meant = f"did you mean {close[0]}?" if close else "write a name such as Asia/Shanghai or UTC"
    return InvalidSchedule("timezone", f"{shown(name)} is not an IANA zone", meant)


def _offset(info: ZoneInfo, instant: datetime) -> timedelta:
    found = instant.replace(tzinfo=UTC).astimezone(info).utcoffset()
    assert found is not None  # a ZoneInfo always has one for an instant
    return found


def _changes(info: ZoneInfo, start: datetime, end: datetime) -> list[tuple[datetime, timedelta, timedelta]]:
    """The changes of offset in start < T ≤ end: the first instant with the new offset, the old and the new."""
    found = []
    at, here = start, _offset(info, start)
    while at < end:
        following = min(at + _PROBE, end)
        there = _offset(info, following)
        if there != here:
            low, high = at, following  # here holds at low, no more at high
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=1) // 2)
                low, high = (middle, high) if _offset(info, middle) == here else (low, middle)
            found.append((high, here, there))
        at, here = following, there
    return found


@lru_cache(maxsize=4096)
def _cut(name: str, year: int) -> datetime:
    """Where the table of a year begins: early in January, with no change of offset near, so that a gap or a fold
    never lies across two tables."""
    info = ZoneInfo(name)
    cut = datetime(year, 1, 1)
    while _changes(info, cut - _MARGIN, cut + _MARGIN):
        cut += 2 * _MARGIN
    return cut


@lru_cache(maxsize=4096)
def _stretches(name: str, year: int) -> tuple[Stretch, ...]:
    info = ZoneInfo(name)
    start, end = _cut(name, year), _cut(name, year + 1)
    changes = _changes(info, start, end)
    first, last = _offset(info, start), _offset(info, end)
    # One row per edge of a stretch: the cut at each end changes nothing.
    edges = [(start, first, first), *changes, (end, last, last)]
    return tuple(
        Stretch(edges[i][0], edges[i + 1][0], edges[i][2], edges[i][1], edges[i + 1][2])
        for i in range(len(edges) - 1)
    )
