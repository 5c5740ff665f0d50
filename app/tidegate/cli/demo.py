"""`tidegate demo`."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from tidegate.cli.option import json_option
from tidegate.cli.view import render
from tidegate.demo.play import Play
from tidegate.demo.verdict import Verdict
from tidegate.store import Snapshot


@click.command()
@json_option
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Run there, and leave settings, ledger and log behind.",
)
def demo(as_json: bool, keep: Path | None) -> None:
    """Run the fleet's main job on real input, about a minute, and judge it by what the tasks themselves wrote.

    Two workers, two beats, three tenants of which one has twenty times the work, a web site that is slow, busy and
    broken, a full queue, a killed worker, dead letters and their replay. Needs nothing that is not installed. Exit
    code 1 if anything was lost, ran twice at once, went over a limit, or fired twice or not at all.
    """
    folder = _folder(keep)
    verdict = None
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # as Ctrl-C: stop the fleet, say where
    try:
        with _Screen(as_json) as screen:
            verdict = Play(folder, screen.say, screen.watch).run()
    finally:
        if keep is None and verdict is not None and verdict.holds:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            click.echo(f"settings, ledger and log of the run are in {folder}", err=True)
    if as_json:
        click.echo(json.dumps(verdict.as_dict()))
    else:
        for line in sentences(verdict):
            click.echo(line)
    if not verdict.holds:
        click.get_current_context().exit(1)


def sentences(verdict: Verdict) -> Iterator[str]:
    """The verdict for a person."""
    yield ""
    yield (
        f"{verdict.submitted} jobs offered: {verdict.accepted} accepted, {verdict.rejected} refused (full),"
        f" {verdict.duplicates} duplicates"
    )
    yield (
        f"of those accepted {verdict.succeeded} succeeded, {verdict.dead} are dead letters, {verdict.lost} lost;"
        f" {verdict.replayed} were replayed"
    )
    yield (
        f"{verdict.overlapping_attempts} attempts overlapped, {verdict.limit_violations} went over a limit;"
        f" {verdict.fires} fires, {verdict.fires_duplicated} twice, {verdict.fires_missed} missed"
    )
    for tenant, peak in verdict.peak_concurrency.items():
        idle = verdict.wait_p95_idle[tenant]
        beside = f", {idle:.2f} s on the idle fleet" if idle else ""
        yield (
            f"  {tenant:<8} at most {peak} at once (limit {verdict.limit[tenant]}),"
            f" 95 % waited under {verdict.wait_p95[tenant]:.2f} s{beside}"
        )
    yield f"{'everything held' if verdict.holds else 'SOMETHING DID NOT HOLD'} in {verdict.seconds:g} s"


class _Screen:
    """A live view on a terminal, plain lines elsewhere."""

    def __init__(self, as_json: bool) -> None:
        console = Console(stderr=as_json)
        self._console, self._live = console, Live(console=console, transient=True, auto_refresh=False)
        self._began, self._told = time.monotonic(), 0.0
        self._moves = console.is_terminal

    def __enter__(self) -> _Screen:
        if self._moves:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._moves:
            self._live.stop()

    def say(self, line: str) -> None:
        """What happens in the play."""
        self._console.print(
            f"{time.monotonic() - self._began:6.1f} s  {line}", highlight=False, markup=False, soft_wrap=True
        )

    def watch(self, now: Snapshot) -> None:
        """The fleet in numbers: a picture, or a line every three seconds."""
        if self._moves:
            self._live.update(render(now), refresh=True)
        elif time.monotonic() - self._told >= 3.0:
            self._told = time.monotonic()
            queue = now.queues["default"]
            self.say(
                f"  {queue.depth} of {queue.limit} unfinished: {queue.waiting} wait, {queue.running} run,"
                f" {queue.retry_waiting} wait for a retry, {queue.dead} dead letters"
            )


def _folder(keep: Path | None) -> Path:
    """A new folder for the run; the one that was named must hold nothing that the run could damage."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="tidegate-demo-"))
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise click.BadParameter(f"{keep} is not empty; name a new folder", param_hint="--keep")
    return keep
