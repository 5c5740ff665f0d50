"""An independent answer to "when does it fire?": walk through time minute by minute and look at the clock.

Slow, and without a thought about offsets: it knows only what the wall shows at each minute, which minutes it shows
twice, and which it leaves out. Expressions are drawn together with the sets they mean, so nothing is parsed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)

ZONES = (
    "UTC", "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Santiago", "America/Havana",
    "America/Nuuk", "America/Sao_Paulo", "America/Asuncion", "America/Mexico_City", "America/Scoresbysund",
    "Atlantic/Azores", "Europe/London", "Europe/Dublin", "Europe/Berlin", "Europe/Volgograd", "Europe/Chisinau",
    "Africa/Casablanca", "Africa/Cairo", "Africa/Juba", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Asia/Amman",
    "Asia/Shanghai", "Asia/Kathmandu", "Asia/Almaty", "Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """An expression, and what it means in sets and predicates."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    is_day: Callable[[date], bool]
    fixed: bool

    def matches(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.month in self.months
            and self.is_day(wall.date())
        )


def walk(drawn: Drawn, zone: str, start: datetime, end: datetime, gap: str, fold: str) -> list[datetime]:
    """The fires in start < at ≤ end (whole minutes, UTC), by looking at each minute from two days before on."""
    if gap == "auto":
        gap = "gap_end" if drawn.fixed else "skip"
    if fold == "auto":
        fold = "first" if drawn.fixed else "both"
    info = ZoneInfo(zone)
    found: set[datetime] = set()
    shown: dict[datetime, list[datetime]] = {}
    at, before = start - timedelta(days=2), None
    while at <= end + timedelta(days=2):
        wall = at.astimezone(info).replace(tzinfo=None)
        if drawn.matches(wall):
            shown.setdefault(wall, []).append(at)
        if before is not None:
            missing = before + MINUTE
            while missing < wall:
                if drawn.matches(missing):
                    if gap == "gap_end":
                        found.add(at)
                    elif gap == "shift":
                        found.add(at + (missing - before - MINUTE))
                missing += MINUTE
        at, before = at + MINUTE, wall
    for moments in shown.values():
        found.update({"first": moments[:1], "second": moments[-1:], "both": moments}[fold])
    return sorted(moment for moment in found if start < moment <= end)


@cache
def changes(zone: str) -> tuple[datetime, ...]:
    """The first minutes with a new offset, from 2020 to 2030."""
    info, day = ZoneInfo(zone), timedelta(days=1)

    def offset(at: datetime) -> timedelta | None:
        return at.astimezone(info).utcoffset()

    found, at = [], datetime(2020, 1, 1, tzinfo=UTC)
    while at.year < 2031:
        if offset(at) != offset(at + day):
            found.append(
                next(at + i * MINUTE for i in range(1, 1441) if offset(at + i * MINUTE) != offset(at))
            )
        at += day
    return tuple(found)


_Day = Callable[[date], bool]


def draw(random: Random) -> Drawn:
    """A random expression of the whole dialect (but seconds and H). It may be one that never fires."""
    minutes_text, minutes, minutes_star = _numbers(random, 0, 59)
    hours_text, hours, hours_star = _numbers(random, 0, 23)
    months_text, months, _ = (
        _numbers(random, 1, 12) if random.random() < 0.2 else ("*", set(range(1, 13)), True)
    )
    dates_text, on_date, dates_star = _days(random, 1, 31, lambda day: day.day, _date_mark)
    week_text, on_week, week_star = _days(random, 0, 6, lambda day: day.isoweekday() % 7, _week_mark)

    def is_day(day: date) -> bool:
        if dates_star or week_star:
            return on_date(day) and on_week(day)
        return on_date(day) or on_week(day)

    return Drawn(
        f"{minutes_text} {hours_text} {dates_text} {months_text} {week_text}",
        frozenset(minutes),
        frozenset(hours),
        frozenset(months),
        is_day,
        not minutes_star and not hours_star and len(hours) < 24,
    )


def _days(
    random: Random,
    low: int,
    high: int,
    number: Callable[[date], int],
    mark: Callable[[Random], tuple[str, _Day]],
) -> tuple[str, _Day, bool]:
    kind = random.random()
    if kind < 0.5:
        return random.choice(["*", "?"]), lambda day: True, True
    text, numbers, star = _numbers(random, low, high)
    if kind < 0.75:
        return text, lambda day: number(day) in numbers, star
    marked_text, marked = mark(random)
    if kind < 0.9:
        return marked_text, marked, False
    return f"{text},{marked_text}", lambda day: number(day) in numbers or marked(day), star


def _numbers(random: Random, low: int, high: int) -> tuple[str, set[int], bool]:
    """A list of one to three items: its text, the numbers, and whether it starts with a star."""
    items = [_item(random, low, high) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    text = ",".join(item for item, _ in items)
    return text, set().union(*(numbers for _, numbers in items)), text.startswith("*")


def _item(random: Random, low: int, high: int) -> tuple[str, set[int]]:
    step = random.randint(1, high - low + 1)
    first, last = random.randint(low, high), random.randint(low, high)
    kind = random.randrange(6)
    if kind == 0:
        return "*", set(range(low, high + 1))
    if kind == 1:
        return f"*/{step}", {value for value in range(low, high + 1) if (value - low) % step == 0}
    if kind == 2:
        return f"{first}/{step}", {value for value in range(first, high + 1) if (value - first) % step == 0}
    if kind == 3:
        around = [first]  # walk from the first to the last, around the end of the field
        while around[-1] != last:
            around.append(around[-1] + 1 if around[-1] < high else low)
        if random.random() < 0.5:
            return f"{first}-{last}", set(around)
        return f"{first}-{last}/{step}", set(around[::step])
    return str(first), {first}


def _date_mark(random: Random) -> tuple[str, _Day]:
    if random.random() < 0.4:
        return "L", lambda day: (day + timedelta(days=1)).month != day.month
    wanted = random.randint(1, 28)

    def nearest(day: date) -> bool:
        target = day.replace(day=wanted)
        working = [
            candidate
            for distance in (0, -1, 1, -2, 2)
            if (candidate := target + timedelta(days=distance)).month == day.month
            and candidate.isoweekday() < 6
        ]
        return day == working[0]

    return f"{wanted}W", nearest


def _week_mark(random: Random) -> tuple[str, _Day]:
    wanted, nth = random.randint(0, 7), random.randint(1, 5)
    if random.random() < 0.5:
        return (
            f"L{wanted}",
            lambda day: day.isoweekday() % 7 == wanted % 7 and ((day + timedelta(days=7)).month != day.month),
        )
    return f"{wanted}#{nth}", lambda day: day.isoweekday() % 7 == wanted % 7 and (day.day - 1) // 7 == nth - 1
