"""The fleet in numbers, drawn for a terminal. Pure: a snapshot in, a picture out."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidegate.domain.job import Pressure
from tidegate.store import QueueCounts, Snapshot, TenantNow

_BAR = 12
_COLOURS = {Pressure.GREEN: "green", Pressure.YELLOW: "yellow", Pressure.RED: "red"}
#: the ages: of the oldest job that waits for a worker, and of the oldest at a limit of its tenant or another resource
_HEADS = ("depth", "waiting", "running", "retries", "dead", "oldest", "at limit")
#: tenants that are drawn
_TENANTS = 12


def render(now: Snapshot) -> RenderableType:
    """Queues, tenants and who works for them."""
    queues = Table(box=None, pad_edge=False)
    for name in ("queue", "pressure"):
        queues.add_column(name, no_wrap=True)
    for name in _HEADS:
        queues.add_column(name, justify="right")
    for name, queue in sorted(now.queues.items()):
        queues.add_row(name, bar(queue.depth, queue.limit, _COLOURS[queue.pressure]), *cells(queue))
    tenants = Table(box=None, pad_edge=False)
    for name in ("tenant", "running", ""):
        tenants.add_column(name)
    for one in now.tenants[:_TENANTS]:
        tenants.add_row(one.name, bar(one.running, one.limit or one.running, "cyan"), running(one))
    parts: list[RenderableType] = [queues, Text()]
    if now.tenants:
        parts += [tenants, Text()]
    return Group(*parts, *(Text(line, style="dim") for line in notes(now)))


def lines(now: Snapshot, width: int = 120) -> list[str]:
    """The same as plain text, without colours and escape codes. width: characters."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False)
    with console.capture() as caught:
        console.print(render(now))
    return [line.rstrip() for line in caught.get().splitlines()]


def bar(part: int, whole: int, colour: str) -> Text:
    """How much of the whole there is."""
    full = min(_BAR, round(_BAR * part / whole)) if whole > 0 else 0
    return Text("█" * full, style=colour) + Text("░" * (_BAR - full), style="dim")


def cells(queue: QueueCounts) -> tuple[str, ...]:
    """The numbers of one queue as they are shown."""
    return (
        f"{queue.depth}/{queue.limit}" + (" paused" if queue.paused else ""),
        str(queue.waiting),
        str(queue.running),
        str(queue.retry_waiting),
        str(queue.dead),
        f"{queue.capacity_age_ms / 1000:.1f} s",
        f"{queue.limit_age_ms / 1000:.1f} s",
    )


def running(one: TenantNow) -> str:
    """Of how many."""
    return str(one.running) if one.limit is None else f"{one.running} of {one.limit}"


def notes(now: Snapshot) -> Iterator[str]:
    """Who works, and what stands still."""
    slots = sum(worker.concurrency for worker in now.workers)
    many = len(now.workers)
    if many:
        yield f"{many} worker{'s' if many > 1 else ''}, {slots} slots"
    else:
        yield "no worker: nothing that waits is started"
    if not now.beat_alive:
        yield "no beat process: retries, schedules and the results of dead jobs wait"
    if now.failed:
        yield f"{now.failed} failed attempts wait for a decision"
    if now.held_ms:
        yield f"the store came back and waits {now.held_ms / 1000:g} s for its workers; nothing is started meanwhile"
