"""Naive local wall times of an expression: what a clock on the wall shows when it fires, whatever the zone."""

from __future__ import annotations

import copy
from bisect import bisect_right
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, time, timedelta
from functools import lru_cache

from croniter import CroniterBadDateError, croniter

from tidegate_beat.semantics.expression import Expression

#: from here on nothing is planned: the arithmetic of zones needs room before the end of `datetime`
LAST_YEAR = MAXYEAR - 2


@dataclass(frozen=True, slots=True)
class Walls:
    """The wall times of one expression; compile it once with `walls`.

    Croniter enumerates. Days with marks (`L`, `L5`, `1#2`, `15W`) are enumerated here instead (`engine` is None),
    because croniter 7.0 refuses `W` in lists and `#` or `L5` beside plain weekdays.
    """

    expression: Expression
    engine: croniter | None

    def after(self, wall: datetime) -> datetime | None:
        """The first wall time later than `wall` (naive); None if there is none up to the last year."""
        if wall.year > LAST_YEAR:
            return None
        found = self._ours(wall) if self.engine is None else self._theirs(self.engine, wall)
        return found if found is not None and found.year <= LAST_YEAR else None

    def since(self, wall: datetime) -> datetime | None:
        """The first wall time at or later than `wall`; wall times are whole seconds."""
        return self.after(wall.replace(microsecond=0) - timedelta(seconds=0 if wall.microsecond else 1))

    def _theirs(self, engine: croniter, wall: datetime) -> datetime | None:
        # A croniter keeps its place in itself; a copy keeps this function free of state, and costs little.
        place = copy.copy(engine)
        try:
            found: datetime = place.get_next(datetime, start_time=wall.replace(microsecond=0))
        except CroniterBadDateError:
            return None
        return found

    def _ours(self, wall: datetime) -> datetime | None:
        for day in self.expression.days.since(wall.date()):
            at = self._time(wall) if day == wall.date() else self._time(None)
            if at is not None:
                return datetime.combine(day, at)
        return None

    def _time(self, wall: datetime | None) -> time | None:
        """The first time of a day, or the first later than the one of `wall` on its day."""
        hours, minutes = self.expression.hour.values, self.expression.minute.values
        seconds = self.expression.second.values if self.expression.second is not None else (0,)
        if wall is None:
            return time(hours[0], minutes[0], seconds[0])
        if wall.hour in hours:
            if wall.minute in minutes and (second := _later(seconds, wall.second)) is not None:
                return time(wall.hour, wall.minute, second)
            if (minute := _later(minutes, wall.minute)) is not None:
                return time(wall.hour, minute, seconds[0])
        hour = _later(hours, wall.hour)
        return None if hour is None else time(hour, minutes[0], seconds[0])


@lru_cache(maxsize=4096)
def walls(expression: Expression) -> Walls:
    """Schedules of one expression share its engine: many have the same, and a croniter is not small."""
    return Walls(expression, _compiled(expression) if expression.days.plain else None)


def _later(values: tuple[int, ...], value: int) -> int | None:
    at = bisect_right(values, value)
    return values[at] if at < len(values) else None


def _compiled(expression: Expression) -> croniter:
    days = expression.days
    either = not days.both
    # Croniter takes a full list of days for `*` and then asks for the other field only; with "or" it is every day.
    whole = either and (days.day_of_month.full or days.day_of_week.full)
    dates = "*" if whole or days.day_of_month.full else _listed(days.day_of_month.values)
    weekdays = "*" if whole or days.day_of_week.full else _listed(days.day_of_week.values)
    parts = [
        _listed(expression.minute.values),
        _listed(expression.hour.values),
        dates,
        _listed(days.month.values),
        weekdays,
    ]
    if expression.second is not None:
        parts.append(_listed(expression.second.values))
    # 2000-01-01 is any date: each question brings its own.
    return croniter(" ".join(parts), datetime(2000, 1, 1), day_or=either)


def _listed(values: tuple[int, ...]) -> str:
    return ",".join(str(value) for value in values)
