"""Naive local wall times of an expression: what a clock on the wall shows when it fires, whatever the zone."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import MAXYEAR, datetime, time, timedelta
from itertools import product

from croniter import CroniterBadDateError, croniter

from tidegate_beat.semantics.expression import Expression

#: from here on nothing is planned: the arithmetic of zones needs room before the end of `datetime`
LAST_YEAR = MAXYEAR - 2


@dataclass(frozen=True, slots=True)
class Walls:
    """The wall times of one expression; compile it once with `Walls.of`.

    Croniter enumerates. Days with marks (`L`, `L5`, `1#2`, `15W`) are enumerated here instead, because croniter 7.0
    refuses `W` in lists and `#` or `L5` beside plain weekdays.
    """

    expression: Expression
    _engine: croniter | None
    _times: tuple[time, ...] = field(repr=False)

    @staticmethod
    def of(expression: Expression) -> Walls:
        if expression.days.plain:
            return Walls(expression, _compiled(expression), ())
        seconds = expression.second.values if expression.second is not None else (0,)
        hours, minutes = expression.hour.values, expression.minute.values
        times = tuple(time(*parts) for parts in product(hours, minutes, seconds))
        return Walls(expression, None, times)

    def after(self, wall: datetime) -> datetime | None:
        """The first wall time later than `wall` (naive); None if there is none up to the last year."""
        if wall.year > LAST_YEAR:
            return None
        found = self._ours(wall) if self._engine is None else self._theirs(self._engine, wall)
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
            for at in self._times:
                if (found := datetime.combine(day, at)) > wall:
                    return found
        return None


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
