"""`tidegate top`."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from tidegate.cli.option import config_option, json_option
from tidegate.cli.status import as_dict
from tidegate.cli.view import lines, render
from tidegate.config import load
from tidegate.domain.errors import TidegateError
from tidegate.service import status as service
from tidegate.store import Snapshot


@click.command()
@config_option
@json_option
@click.option(
    "-i", "--interval", type=click.FloatRange(0.1, 60), default=1.0, show_default=True, help="Seconds."
)
@click.option("-n", "--number", type=click.IntRange(1), help="End after so many pictures.")
def top(config_file: Path | None, as_json: bool, interval: float, number: int | None) -> None:
    """The fleet, live: queues and how full they are, ages, running jobs by tenant, retries, dead letters, who works.

    Ctrl-C ends it. Where it does not write to a terminal, or with --json, the pictures follow each other.
    """
    frames = service.watch(load(config_file), interval, number)
    console = Console()
    try:
        if as_json:
            for frame in frames:
                click.echo(json.dumps(_as_dict(frame), ensure_ascii=False))
        elif not console.is_terminal:
            for frame in frames:
                click.echo("\n".join(_lines(frame)) + "\n")
        else:
            with Live(console=console, auto_refresh=False, screen=number is None) as live:
                for frame in frames:
                    live.update(_picture(frame), refresh=True)
    except KeyboardInterrupt:
        return


def _picture(frame: Snapshot | TidegateError) -> RenderableType:
    return render(frame) if isinstance(frame, Snapshot) else Text(_waiting(frame), style="red")


def _lines(frame: Snapshot | TidegateError) -> list[str]:
    return lines(frame) if isinstance(frame, Snapshot) else [_waiting(frame)]


def _as_dict(frame: Snapshot | TidegateError) -> dict[str, object]:
    return as_dict(frame) if isinstance(frame, Snapshot) else frame.as_dict()


def _waiting(error: TidegateError) -> str:
    return f"{error}\nasking again until it answers; Ctrl-C ends this"
