"""On which days an expression fires. Pure calendar arithmetic."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, date

from tidegate_beat.semantics.field import Field, Mark, Marked

#: 28 years in a row hold every kind of year (weekday of 1 January × leap or not), so what matches none never fires
_KINDS_OF_YEAR = range(2000, 2028)


@dataclass(frozen=True, slots=True)
class DayRule:
    """Debian's cron: both day fields must match when one of them starts with `*`, otherwise one is enough."""

    day_of_month: Field
    month: Field
    day_of_week: Field

    @property
    def both(self) -> bool:
        return self.day_of_month.starred or self.day_of_week.starred

    @property
    def plain(self) -> bool:
        """Whether the days are numbers only."""
        return not self.day_of_month.marks and not self.day_of_week.marks

    def in_month(self, year: int, month: int) -> tuple[int, ...]:
        """The days of that month, ascending."""
        if month not in self.month.values:
            return ()
        first, length = monthrange(year, month)
        sunday = (first + 1) % 7  # weekday of the 1st, counted from Sunday = 0
        by_date = {day for day in self.day_of_month.values if day <= length}
        by_date |= {_day(mark, sunday, length) for mark in self.day_of_month.marks}
        wanted = frozenset(self.day_of_week.values)
        by_week = {day for day in range(1, length + 1) if (sunday + day - 1) % 7 in wanted}
        by_week |= {_day(mark, sunday, length) for mark in self.day_of_week.marks}
        chosen = by_date & by_week if self.both else by_date | by_week
        return tuple(sorted(chosen - {0}))

    def ever(self) -> bool:
        """Whether there is any such day in any year."""
        return any(self.in_month(year, month) for year in _KINDS_OF_YEAR for month in self.month.values)

    def since(self, start: date) -> Iterator[date]:
        """The days from `start` on, `start` included."""
        for year in range(start.year, MAXYEAR + 1):
            for month in self.month.values:
                if (year, month) >= (start.year, start.month):
                    for day in self.in_month(year, month):
                        if (found := date(year, month, day)) >= start:
                            yield found


def _day(item: Marked, sunday: int, length: int) -> int:
    """The day that the item names in a month of `length` days whose 1st has weekday `sunday`; 0 if there is none."""
    if item.mark is Mark.LAST_DAY:
        return length
    if item.mark is Mark.NTH_WEEKDAY:
        day = (item.number - sunday) % 7 + 1 + 7 * (item.nth - 1)
        return day if day <= length else 0
    if item.mark is Mark.LAST_WEEKDAY:
        return length - (sunday + length - 1 - item.number) % 7
    # The nearest Monday to Friday of the same month, as Quartz defined W.
    weekday = (sunday + item.number - 1) % 7
    if weekday == 6:
        return item.number - 1 if item.number > 1 else 3
    if weekday == 0:
        return item.number + 1 if item.number < length else item.number - 2
    return item.number
