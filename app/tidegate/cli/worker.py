"""`tidegate worker`: a Celery worker of the fleet, with the settings' app, pool, concurrency and queues."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from tidegate.cli.option import config_option
from tidegate.config import Pool, Settings, load
from tidegate.worker.application import application
from tidegate.worker.install import fleet_of


@click.command()
@config_option
@click.option("-c", "--concurrency", type=click.IntRange(1, 1024), help="Jobs that run at once.")
@click.option("-P", "--pool", type=click.Choice([pool.value for pool in Pool]), help="Celery's pool.")
@click.option("-Q", "--queues", metavar="A,B", help="Queues to consume, separated by commas.")
@click.option("-n", "--hostname", metavar="NAME", help="Node name, for remote control; %h is the host's.")
@click.option(
    "-l",
    "--loglevel",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
)
def worker(
    config_file: Path | None,
    concurrency: int | None,
    pool: str | None,
    queues: str | None,
    hostname: str | None,
    loglevel: str,
) -> None:
    """Run a worker until it is told to stop (SIGTERM: finish what runs, give back the rest).

    `celery -A your.app worker` does the same for an app that calls `tidegate.install(app)`.
    """
    settings = _with(load(config_file), concurrency, pool, queues)
    _run(settings, hostname, loglevel)


def _with(settings: Settings, concurrency: int | None, pool: str | None, queues: str | None) -> Settings:
    """The settings with what the command line says instead."""
    said = settings.worker
    names = tuple(name.strip() for name in (queues or "").split(",") if name.strip())
    changed = dataclasses.replace(
        said,
        concurrency=concurrency or said.concurrency,
        pool=Pool(pool) if pool else said.pool,
        queues=names or said.queues,
    )
    return dataclasses.replace(settings, worker=changed)


def _run(settings: Settings, hostname: str | None, loglevel: str) -> None:
    app = application(settings)
    fleet = fleet_of(app)
    for queue in settings.worker.queues:
        fleet.consume(queue)  # UnknownQueue now, with its hint
    fleet.store  # noqa: B018 - StoreUnavailable and StoreRefused now, with their exit codes
    arguments = [
        "worker",
        f"--loglevel={loglevel.upper()}",
        f"--pool={settings.worker.pool.value}",
        f"--concurrency={settings.worker.concurrency}",
        f"--queues={','.join(settings.worker.queues)}",
        # events, and chatter among workers: each a synchronous command in the main loop, and nobody needs them here
        "--without-heartbeat",
        "--without-gossip",
        "--without-mingle",
    ]
    if hostname:
        arguments.append(f"--hostname={hostname}")
    app.worker_main(arguments)
