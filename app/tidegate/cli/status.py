"""`tidegate status`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tidegate.cli.option import config_option, json_option
from tidegate.config import load
from tidegate.service import status as service
from tidegate.store import QueueCounts, Snapshot

_COLUMNS = (
    "queue",
    "depth",
    "limit",
    "waiting",
    "delayed",
    "running",
    "failed",
    "retrying",
    "dead",
    "oldest",
    "pressure",
)


@click.command()
@config_option
@json_option
def status(config_file: Path | None, as_json: bool) -> None:
    """Queues, workers and the store, from one instant."""
    settings = load(config_file)
    found = service.status(settings)
    if as_json:
        click.echo(json.dumps({"fleet": settings.fleet.name, **as_dict(found)}, ensure_ascii=False))
        return
    for line in table([_COLUMNS, *(_row(name, found.queues[name]) for name in sorted(found.queues))]):
        click.echo(line)
    click.echo()
    for worker in found.workers:
        queues = ", ".join(worker.queues)
        click.echo(
            f"worker {worker.worker_id}  {worker.hostname} pid {worker.pid}  {worker.concurrency} slots  {queues}"
        )
    if not found.workers:
        click.echo("no worker: nothing that waits is started")
    of = f" of {_size(found.memory_max)}" if found.memory_max else ", no limit set"
    click.echo(f"store {found.server}  epoch {found.epoch}  memory {_size(found.memory_used)}{of}")
    if found.held_ms > 0:
        click.echo(
            f"the store came back and waits {found.held_ms / 1000:g} s for its workers; nothing is started meanwhile"
        )


def as_dict(found: Snapshot) -> dict[str, Any]:
    """The stable JSON form: counts are jobs, times are seconds, memory is bytes."""
    return {
        "queues": {
            name: {
                "depth": queue.depth,
                "limit": queue.limit,
                "waiting": queue.waiting,
                "delayed": queue.delayed,
                "running": queue.running,
                "failed": queue.failed,
                "retry_waiting": queue.retry_waiting,
                "dead": queue.dead,
                "oldest_age": queue.oldest_age_ms / 1000,
                "oldest_age_by_cause": {
                    "capacity": queue.capacity_age_ms / 1000,
                    "limit": queue.limit_age_ms / 1000,
                },
                "paused": queue.paused,
                "pressure": queue.pressure.value,
            }
            for name, queue in sorted(found.queues.items())
        },
        "workers": [
            {
                "id": worker.worker_id,
                "hostname": worker.hostname,
                "pid": worker.pid,
                "queues": list(worker.queues),
                "concurrency": worker.concurrency,
                "release": worker.release,
            }
            for worker in found.workers
        ],
        "store": {
            "server": found.server,
            "epoch": found.epoch,
            "resets": found.resets,
            "held": found.held_ms / 1000,
            "memory_used": found.memory_used,
            "memory_max": found.memory_max or None,
        },
        "tenants": [{"name": one.name, "running": one.running, "limit": one.limit} for one in found.tenants],
        "beat_silent": found.beat_silent_s,
        "stale_reports": found.stale_reports,
        "leases_expired": found.leases_expired,
    }


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their widest cell; the first one to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _row(name: str, queue: QueueCounts) -> tuple[str, ...]:
    standing = (queue.depth, queue.limit, queue.waiting, queue.delayed, queue.running)
    failed = (queue.failed, queue.retry_waiting, queue.dead)
    return (name, *map(str, standing + failed), f"{queue.oldest_age_ms / 1000:.1f}s", queue.pressure.value)


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"
