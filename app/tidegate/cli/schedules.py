"""`tidegate schedules list|history`: where schedules stand, and what became of their fires."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tidegate.cli.option import config_option, json_option
from tidegate.cli.status import table
from tidegate.config import Settings, load
from tidegate.domain.fire import Fate, Mark, utc_text
from tidegate.service import schedule as service

_NEVER = "no beat process has run with it yet"


@click.group()
def schedules() -> None:
    """What beat starts at its times."""


@schedules.command("list")
@config_option
@json_option
def listed(config_file: Path | None, as_json: bool) -> None:
    """The schedules of the settings, with their last fires. Exit code 1 if there is none."""
    settings = load(config_file)
    found = service.schedules(settings)
    if as_json:
        click.echo(json.dumps({"schedules": [as_dict(settings, one) for one in found]}, ensure_ascii=False))
    elif not found:
        click.echo("no schedules; a section [schedules.NAME] in the settings makes one")
    else:
        head = ("schedule", "task", "decided up to", "last fire", "fate")
        for line in table([head, *map(_row, found)]):
            click.echo(line.rstrip())
    if not found:
        click.get_current_context().exit(1)


@schedules.command()
@config_option
@json_option
@click.argument("schedule")
@click.option("-n", "--number", type=click.IntRange(1, 200), default=20, show_default=True, help="Rows.")
def history(config_file: Path | None, as_json: bool, schedule: str, number: int) -> None:
    """What became of its latest fires, the latest first. Exit code 1 if nobody knows the schedule."""
    settings = load(config_file)
    found = service.history(settings, schedule, number)
    if found is None:
        click.echo(f"no schedule {schedule!r}; `tidegate schedules list` shows those there are", err=True)
        click.get_current_context().exit(1)
    if as_json:
        click.echo(json.dumps(as_dict(settings, found), ensure_ascii=False))
    elif found.history is None:
        click.echo(_NEVER)
    else:
        head = ("logical time", "fate", "fires", "lag", "what")
        for line in table([head, *(_fire(settings, schedule, mark) for mark in found.history.marks)]):
            click.echo(line.rstrip())
        click.echo(f"decided up to {utc_text(found.history.cursor.at_ms)}")


def as_dict(settings: Settings, view: service.ScheduleView) -> dict[str, Any]:
    """The stable JSON form; times are UTC, durations seconds. `waits_since`: its queue refuses the next fire."""
    found = view.history
    return {
        "id": view.schedule_id,
        "task": view.task,
        "cursor": utc_text(found.cursor.at_ms) if found else None,
        "waits_since": utc_text(found.cursor.full_since_ms) if found and found.cursor.full_since_ms else None,
        "fires": [_mark(settings, view.schedule_id, mark) for mark in found.marks] if found else [],
    }


def _mark(settings: Settings, schedule_id: str, mark: Mark) -> dict[str, Any]:
    decided = mark.decided
    emitted = decided.fate in (Fate.EMITTED, Fate.DUPLICATE)
    return {
        "time": utc_text(decided.at_ms),
        "first": utc_text(decided.first_ms),
        "fires": decided.number,
        "fate": decided.fate.value,
        "reason": decided.detail if decided.fate is Fate.MISSED else None,
        "into": utc_text(int(decided.detail)) if decided.fate is Fate.COALESCED else None,
        "operation": service.operation_of(settings, schedule_id, mark) if emitted else None,
        "lag": mark.lag_ms / 1000,
    }


def _row(view: service.ScheduleView) -> tuple[str, ...]:
    found = view.history
    if found is None:
        return view.schedule_id, view.task or "", "", "", _NEVER
    last = found.marks[0].decided if found.marks else None
    waits = ", the next one waits for room" if found.cursor.full_since_ms else ""
    return (
        view.schedule_id,
        view.task or "",
        utc_text(found.cursor.at_ms),
        utc_text(last.at_ms) if last else "",
        (last.fate.value if last else "none yet") + waits,
    )


def _fire(settings: Settings, schedule_id: str, mark: Mark) -> tuple[str, ...]:
    decided = mark.decided
    match decided.fate:
        case Fate.COALESCED:
            what = f"into {utc_text(int(decided.detail))}"
        case Fate.MISSED:
            what = decided.detail
        case _:
            what = f"operation {service.operation_of(settings, schedule_id, mark)}"
    if decided.number > 1:
        what = f"since {utc_text(decided.first_ms)}, {what}"
    lag = f"{mark.lag_ms / 1000:.3f}s"
    return utc_text(decided.at_ms), decided.fate.value, str(decided.number), lag, what
