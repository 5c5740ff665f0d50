"""`tidegate up`: a whole fleet on this machine, in one terminal."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from tidegate.cli.option import config_option
from tidegate.cli.speaker import Speaker
from tidegate.config import Settings, load
from tidegate.embedded.place import Place
from tidegate.embedded.resp import LoopbackAddress, UnixAddress
from tidegate.supervisor import SELF, Supervisor


@click.command()
@config_option
@click.option("--workers", type=click.IntRange(0, 64), default=1, show_default=True, help="Worker processes.")
@click.option("--beats", type=click.IntRange(0, 16), default=1, show_default=True, help="Beat processes.")
@click.option("--no-exporter", is_flag=True, help="Serve no metrics.")
@click.option(
    "-l",
    "--loglevel",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
)
def up(config_file: Path | None, workers: int, beats: int, no_exporter: bool, loglevel: str) -> None:
    """Run workers, beat and exporter here, and start again what dies, until told to stop.

    Ctrl-C, SIGTERM or a closed terminal stop everything politely: running jobs get `worker.drain_timeout`. A second
    Ctrl-C kills. Exit code: 0 a polite end; 1 somebody had to be killed, or `up` runs in this folder already; else
    that of the part that could not run.
    """
    if no_exporter and not workers and not beats:
        raise click.UsageError("there is nothing to run: no worker, no beat and no exporter")
    settings = load(config_file)
    speaker = Speaker(sys.stdout.fileno(), colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    fleet = Supervisor(
        settings,
        workers=workers,
        beats=beats,
        exporter=not no_exporter,
        loglevel=loglevel.lower(),
        say=speaker.say,
    )
    try:
        fleet.prepare()
        speaker.introduce([SELF, *(part.name for part in fleet.children)])
        _obey_signals(fleet)
        code = fleet.run(ready=lambda: speaker.tell(greeting(settings, fleet, config_file)))
        if fleet.failure is not None:
            speaker.tell(farewell(fleet))
    finally:
        speaker.close()
    sys.exit(code)


def greeting(settings: Settings, fleet: Supervisor, config_file: Path | None) -> str:
    """Where everything is, and what to type next."""
    again = f" --config {shlex.quote(str(config_file))}" if config_file else ""
    rows = [("store", _store(settings, fleet))]
    address = settings.observability.metrics_address
    where = "it says its port below" if address.endswith(":0") else f"metrics at http://{address}/metrics"
    rows += [
        (part.name, f"pid {part.pid}" + (f", {where}" if part.name == "exporter" else ""))
        for part in fleet.children
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(
        [
            f"fleet {settings.fleet.name!r}, {settings.source or 'no settings file: defaults and environment'}",
            *(f"  {name.ljust(width)}  {text}" for name, text in rows),
            "in another terminal:",
            *(f"  tidegate {words}{again}" for words in ("status", "top", "enqueue TASK")),
            f"Ctrl-C ends it: running jobs get {settings.worker.drain_timeout:g} s; Ctrl-C again kills them",
            "",
        ]
    )


def farewell(fleet: Supervisor) -> str:
    """What the part that could not run said, once more: it stands above everybody's end otherwise."""
    assert fleet.failure is not None
    said = "\n".join(f"  {line}" for line in fleet.failure.said)
    return f"\n{fleet.failure.name} cannot run (exit code {fleet.failure.exit_code}). It said:\n{said}"


def _store(settings: Settings, fleet: Supervisor) -> str:
    if fleet.store is None:
        return settings.broker.shown_url
    place = Place.at(settings.data_dir)
    match place.address():
        case UnixAddress(path):
            where = f"unix://{path}"
        case LoopbackAddress(port, _):
            where = f"127.0.0.1:{port}, password in {place.password_file}"
    return f"embedded, pid {fleet.store.pid}, {where}; data in {place.root}"


def _obey_signals(fleet: Supervisor) -> None:
    def obey(number: int, _frame: FrameType | None) -> None:
        fleet.stop(hurry=number == signal.SIGINT and fleet.stopping)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, obey)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, obey)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would hide every exit status
