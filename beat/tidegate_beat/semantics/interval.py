"""Schedules in elapsed time: `every` from an anchor, and `at` one instant. Wall clocks and zones do not touch them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidegate_beat.semantics.error import InvalidSchedule
from tidegate_beat.semantics.fire import FireTime, utc
from tidegate_beat.semantics.sequence import FireSequence
from tidegate_beat.semantics.zone import Zone

#: what `every` counts from if nothing is said: a fixed instant, so that all emitters agree
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SHORTEST = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Every(FireSequence):
    """Fires at anchor, anchor + period, anchor + 2 × period and so on. `zone` is only how its times are written."""

    period: timedelta
    anchor: datetime
    zone: Zone

    @staticmethod
    def of(seconds: float, zone: Zone, anchor: datetime = EPOCH) -> Every:
        """seconds: at least 0.001, kept to the millisecond. Raises InvalidSchedule."""
        period = timedelta(milliseconds=round(seconds * 1000))
        if period < _SHORTEST:
            raise InvalidSchedule("every", f"{seconds:g} s is too short", "write 1ms or more")
        return Every(period, utc(anchor), zone)

    def fires(self, instant: datetime) -> Iterator[FireTime]:
        """All fires later than `instant` (aware), strictly ascending."""
        count = max(0, (utc(instant) - self.anchor) // self.period + 1)
        while True:
            try:
                at = self.anchor + count * self.period
            except OverflowError:
                return
            yield FireTime(at, self.zone)
            count += 1


@dataclass(frozen=True, slots=True)
class At(FireSequence):
    """Fires once."""

    at: datetime
    zone: Zone

    def fires(self, instant: datetime) -> Iterator[FireTime]:
        """The fire, if it is later than `instant` (aware)."""
        if utc(self.at) > utc(instant):
            yield FireTime(utc(self.at), self.zone)
