"""The schedules of the settings, made ready: their times, what decides about their fires, and the job of each fire.

A schedule that cannot be read stops the process before it begins anything: one that is left out, with a line in a log,
is found out when its report is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.config import DEFAULT_TASK, ConfigError, Fault, Settings
from tidegate.config.kind import dotted
from tidegate.config.lines import key_lines
from tidegate.config.schedule import ScheduleSettings
from tidegate.config.writer import as_mapping
from tidegate.domain.errors import TidegateError
from tidegate.domain.fire import instant_of, utc_text
from tidegate.domain.header import JobHeader
from tidegate.domain.identity import fire_operation_id, operation_task_id
from tidegate.domain.job import NewJob
from tidegate.transport.message import task_message
from tidegate.transport.publish import new_job
from tidegate_beat.semantics import Cron, Every, FireTime, InvalidSchedule, Times, times
from tidegate_beat.semantics.plan import Spec


@dataclass(frozen=True, slots=True)
class Schedule:
    """One [schedules.NAME]. digest: of its times alone, so that only another expression is an edit of them."""

    schedule_id: str
    spec: Spec
    digest: str
    queue: str
    task: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    tenant: str
    pass_fire_time: bool


def schedules(settings: Settings) -> dict[str, Schedule]:
    """All of them, by name. Raises ConfigError with every fault: a time or zone that is none, a job that cannot be."""
    found: dict[str, Schedule] = {}
    faults: list[Fault] = []
    for name, said in settings.schedules.items():
        try:
            found[name] = _schedule(settings, name, said)
            job(settings, found[name], 0)
        except TidegateError as error:
            faults.append(_fault(settings, name, error))
    if faults:
        raise ConfigError(str(settings.source or ""), tuple(faults))
    return found


def job(settings: Settings, schedule: Schedule, at_ms: int) -> NewJob:
    """The job of one fire. at_ms: its logical time. Raises Refused."""
    fleet = settings.fleet.name
    operation_id = fire_operation_id(fleet, schedule.schedule_id, utc_text(at_ms))
    zone = schedule.spec.times.zone
    header = JobHeader(
        tenant=schedule.tenant,
        operation_id=operation_id,
        known=True,
        deadline=at_ms + schedule.spec.deadline if schedule.spec.deadline else 0,
        schedule=schedule.schedule_id,
        logical_fire_time=str(FireTime(instant_of(at_ms), zone)) if schedule.pass_fire_time else "",
    )
    message = task_message(
        schedule.task,
        schedule.args,
        schedule.kwargs,
        task_id=operation_task_id(fleet, operation_id),
        header=header,
    )
    return new_job(settings, schedule.queue, message, at_ms)


def _schedule(settings: Settings, name: str, said: ScheduleSettings) -> Schedule:
    when, plain, task = times(said, name), as_mapping(said), said.task or ""
    return Schedule(
        schedule_id=name,
        spec=Spec(
            times=when,
            catch_up=said.catch_up,
            window=_ms(said.catch_up_window),
            most=said.catch_up_max,
            start_deadline=_ms(said.start_deadline),
            deadline=_ms(said.deadline or 0),
        ),
        digest=_digest(when),
        queue=said.queue or settings.task(task).queue or DEFAULT_TASK.queue or "default",
        task=task,
        args=tuple(plain["args"]),
        kwargs=plain["kwargs"],
        tenant=said.tenant,
        pass_fire_time=said.pass_fire_time,
    )


def _digest(when: Times) -> str:
    """Equal for times that are equal, however they are spelled."""
    match when:
        case Cron():
            text = f"cron {when.expression.text} {when.zone.name} {when.gap.value} {when.fold.value}"
        case Every():
            text = f"every {when.period} {when.anchor.isoformat()}"
        case _:
            text = f"at {when.at.isoformat()}"
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _fault(settings: Settings, name: str, error: TidegateError) -> Fault:
    """The fault, at the key that it is about."""
    path: tuple[str, ...] = ("schedules", name)
    what = str(error)
    if isinstance(error, InvalidSchedule):
        key = error.where if error.where in ("timezone", "every", "anchor", "at", "cron_seconds") else "cron"
        path, what = (*path, key), f"{error.where}: {error.what}; {error.hint}"
    lines = key_lines(settings.source.read_text("utf-8")) if settings.source else {}
    return Fault(dotted(path), what, line=lines.get(path) or lines.get(path[:2]))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
