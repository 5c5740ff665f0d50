"""When schedules fire: expressions, zones and instants. Pure: values and decisions only."""

from __future__ import annotations

from tidegate_beat.semantics.error import InvalidSchedule
from tidegate_beat.semantics.expression import Expression, parse
from tidegate_beat.semantics.fire import FireTime, Note, instant
from tidegate_beat.semantics.interval import At, Every
from tidegate_beat.semantics.occurrence import Cron
from tidegate_beat.semantics.schedule import Times, times
from tidegate_beat.semantics.zone import Zone

__all__ = [
    "At",
    "Cron",
    "Every",
    "Expression",
    "FireTime",
    "InvalidSchedule",
    "Note",
    "Times",
    "Zone",
    "instant",
    "parse",
    "times",
]
