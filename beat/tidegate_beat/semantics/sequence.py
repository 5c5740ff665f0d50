"""The questions that every kind of schedule answers, whatever its fires follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile

from tidegate_beat.semantics.fire import FireTime, utc


class FireSequence(ABC):
    """Fires in time, asked for from any instant; a kind of schedule says only `fires`."""

    __slots__ = ()

    @abstractmethod
    def fires(self, instant: datetime) -> Iterator[FireTime]:
        """All fires later than `instant` (aware), strictly ascending."""

    def next_after(self, instant: datetime) -> FireTime | None:
        """The first fire later than `instant` (aware); None if there is none, or past the end of the calendar."""
        return next(self.fires(instant), None)

    def between(self, start: datetime, end: datetime) -> Iterator[FireTime]:
        """The fires in start < at ≤ end, ascending, one by one."""
        end = utc(end)
        return takewhile(lambda fire: fire.at <= end, self.fires(start))
