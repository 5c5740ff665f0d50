"""`tidegate dlq list|show|replay|audit`: the dead letters."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tidegate.cli.option import config_option, json_option
from tidegate.cli.replay import replay
from tidegate.cli.status import table
from tidegate.config import load
from tidegate.domain.job import JobView
from tidegate.service import dead_letter as service

#: characters of a message in a list
_SHORT = 60


@click.group()
def dlq() -> None:
    """Jobs that are not tried again by themselves, kept whole."""


dlq.add_command(replay)


@dlq.command("list")
@config_option
@json_option
@click.option("-n", "--number", type=click.IntRange(1, 1000), default=50, show_default=True, help="Rows.")
@click.option("--skip", type=click.IntRange(0), default=0, show_default=True, help="Rows to pass over.")
def listed(config_file: Path | None, as_json: bool, number: int, skip: int) -> None:
    """The latest first. Exit code 1 if there is none."""
    total, found = service.dead_letters(load(config_file), number, skip)
    if as_json:
        rows = [as_dict(letter.job) | {"died": _instant(letter.died_ms)} for letter in found]
        click.echo(json.dumps({"total": total, "dead_letters": rows}, ensure_ascii=False))
    else:
        head = ("operation", "died", "queue", "tenant", "task", "reason", "attempts", "error")
        for line in table([head, *(_row(letter.job, letter.died_ms) for letter in found)]) if found else ():
            click.echo(line.rstrip())
        click.echo(f"{len(found)} of {total} dead letters" if total else "no dead letters")
    if not found:
        click.get_current_context().exit(1)


@dlq.command()
@config_option
@json_option
@click.argument("operation")
@click.option("--step", default="", help="Step of a canvas; none for a lone job.")
def show(config_file: Path | None, as_json: bool, operation: str, step: str) -> None:
    """One of them, whole: error, traceback, attempts, payload. Exit code 1 if there is no such dead letter."""
    job = service.dead_letter(load(config_file), operation, step)
    if job is None:
        click.echo(
            f"no dead letter of operation {operation!r}; `tidegate dlq list` shows those there are", err=True
        )
        click.get_current_context().exit(1)
    if as_json:
        click.echo(json.dumps(as_dict(job) | {"payload": _payload(job)}, ensure_ascii=False))
        return
    detail = _detail(job)
    for name, value in as_dict(job).items():
        if name != "tries":
            click.echo(f"{name:<10} {value}")
    click.echo(f"payload    {_payload(job)}")
    for row in job.tries:
        click.echo(f"           {_try(row)}")
    if traceback := detail.get("traceback"):
        click.echo(f"\n{traceback}")


@dlq.command()
@config_option
@json_option
@click.option("-n", "--number", type=click.IntRange(1, 1000), default=50, show_default=True, help="Lines.")
def audit(config_file: Path | None, as_json: bool, number: int) -> None:
    """Who changed what, the latest first. Exit code 1 if nobody changed anything."""
    lines = service.audit(load(config_file), number)
    if as_json:
        rows = [dataclasses.asdict(line) | {"at": _instant(line.at_ms)} for line in lines]
        click.echo(json.dumps({"audit": rows}, ensure_ascii=False))
    for line in () if as_json else lines:
        why = f": {line.reason}" if line.reason else ""
        what = json.dumps(line.detail, ensure_ascii=False)
        click.echo(f"{_instant(line.at_ms)}  {line.by}  {line.command}  {line.count} jobs  {what}{why}")
    if not lines:
        click.get_current_context().exit(1)


def as_dict(job: JobView) -> dict[str, Any]:
    """The stable JSON form; times are UTC."""
    detail = _detail(job)
    return {
        "operation": job.operation_id,
        "step": job.step,
        "job": job.job_id,
        "queue": job.queue,
        "tenant": job.tenant,
        "task": job.task,
        "task_id": job.task_id,
        "reason": job.reason,
        "last": detail.get("last", job.reason),
        "class": detail.get("class"),
        "message": detail.get("message"),
        "attempts": job.attempt,
        "charged": job.charged,
        "crashes": job.crashes,
        "generation": job.generation,
        "enqueued": _instant(job.created_ms),
        "tries": [_instants(row) for row in job.tries],
    }


def _instants(row: Mapping[str, Any]) -> dict[str, Any]:
    times = ("started", "ended", "replayed", "enqueued")
    return {name: _instant(value) if name in times else value for name, value in row.items()}


def _try(row: Mapping[str, Any]) -> str:
    """One attempt, or one replay, in a line."""
    told = _instants(row)
    if "replayed" in told:
        why = f": {told['reason']}" if told.get("reason") else ""
        return f"replayed {told['replayed']} by {told['by']}{why} (first enqueued {told['enqueued']})"
    where = f" on {told.get('host', '?')} ({told['worker']})" if told.get("worker") else ""
    release = f", release {told['release']}" if told.get("release") else ""
    error = " ".join(f"{told.get('class', '')} {told.get('message', '')}".split())
    when = f"attempt {told['n']} {told['started']} to {told['ended']}"
    return f"{when}{where}{release}: {told['outcome']} {error}".rstrip()


def _detail(job: JobView) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(job.detail or "{}")
    return found


def _payload(job: JobView) -> str:
    return job.envelope.decode("utf-8", "backslashreplace")


def _row(job: JobView, died_ms: int) -> tuple[str, ...]:
    detail = _detail(job)
    error = " ".join(f"{detail.get('class', '')} {detail.get('message', '')}".split())
    short = error if len(error) <= _SHORT else f"{error[: _SHORT - 1]}…"
    name = job.operation_id if not job.step else f"{job.operation_id} {job.step}"
    return name, _instant(died_ms), job.queue, job.tenant, job.task, job.reason, str(job.attempt), short


def _instant(milliseconds: int) -> str:
    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
