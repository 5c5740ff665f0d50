"""The times of one [schedules.NAME], made from its settings."""

from __future__ import annotations

from tidegate.config.schedule import ScheduleSettings
from tidegate_beat.semantics.error import InvalidSchedule
from tidegate_beat.semantics.expression import parse
from tidegate_beat.semantics.fire import instant
from tidegate_beat.semantics.interval import EPOCH, At, Every
from tidegate_beat.semantics.occurrence import Cron
from tidegate_beat.semantics.zone import Zone

Times = Cron | Every | At


def times(settings: ScheduleSettings, schedule_id: str) -> Times:
    """When the schedule fires. Calendars and catching up come after this.

    schedule_id: what `H` is drawn from. Raises InvalidSchedule.
    """
    zone = Zone.named(settings.timezone)
    given = [name for name in ("cron", "every", "at") if getattr(settings, name) is not None]
    if len(given) != 1:
        what = f"has {' and '.join(given)}" if given else "says no time"
        raise InvalidSchedule(f"schedules.{schedule_id}", what, "write one of cron, every and at")
    if settings.cron is None and settings.cron_seconds is not None:
        raise InvalidSchedule("cron_seconds", "there is no cron", "remove it")
    if settings.anchor is not None and settings.every is None:
        raise InvalidSchedule("anchor", "there is no every", "remove it")
    if settings.cron is not None:
        expression = parse(settings.cron, schedule_id=schedule_id, cron_seconds=settings.cron_seconds)
        return Cron.of(expression, zone, settings.dst_gap, settings.dst_fold)
    if settings.every is not None:
        anchor = EPOCH if settings.anchor is None else instant(settings.anchor, "anchor")
        return Every.of(settings.every, zone, anchor)
    return At(instant(settings.at or "", "at"), zone)
