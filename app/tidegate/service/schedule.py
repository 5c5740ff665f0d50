"""Where schedules stand and what became of their fires."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.config import Settings
from tidegate.domain.fire import Mark, utc_text
from tidegate.domain.identity import fire_operation_id
from tidegate.service.opened import opened
from tidegate.store import History, Timetable

#: schedules of one question to the store
_BATCH = 100


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """history: None = no beat process has run with it yet. task: None = the settings name it no more."""

    schedule_id: str
    task: str | None
    history: History | None


def schedules(settings: Settings) -> tuple[ScheduleView, ...]:
    """The schedules of the settings by name, each with its last fire. Raises StoreUnavailable, StoreRefused,
    EmbeddedError."""
    names, found = sorted(settings.schedules), dict[str, History]()
    with opened(settings) as store:
        for at in range(0, len(names), _BATCH):
            found |= Timetable(store).history(names[at : at + _BATCH])
    return tuple(ScheduleView(name, settings.schedules[name].task, found.get(name)) for name in names)


def history(settings: Settings, schedule_id: str, most: int = 50) -> ScheduleView | None:
    """One schedule with its latest fires; None if neither the settings nor the store know it. Raises as `schedules`."""
    with opened(settings) as store:
        found = Timetable(store).history([schedule_id], most).get(schedule_id)
    said = settings.schedules.get(schedule_id)
    if found is None and said is None:
        return None
    return ScheduleView(schedule_id, said.task if said else None, found)


def operation_of(settings: Settings, schedule_id: str, mark: Mark) -> str:
    """The operation of a fire, by which `jobs`, results and dead letters know it."""
    return fire_operation_id(settings.fleet.name, schedule_id, utc_text(mark.decided.at_ms))
