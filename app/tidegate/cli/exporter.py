"""`tidegate exporter`."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import click

from tidegate import __version__
from tidegate.cli.option import config_option
from tidegate.config import load
from tidegate.embedded.endpoint import broker_url
from tidegate.observe import Exporter
from tidegate.store import Store

_ENDS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@config_option
def exporter(config_file: Path | None) -> None:
    """Serve the fleet's metrics to Prometheus until told to stop. Any number may run at once.

    The address is `observability.metrics_address`; docs/metrics.md lists what is served.
    """
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = load(config_file)
    store = Store.open(settings, "tool", url=broker_url(settings))
    # Blocked and waited for: a handler would run in the middle of whatever it interrupts. Threads inherit the mask, and
    # so would child processes: the embedded server is started before.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        with Exporter(store, settings, __version__) as running:
            click.echo(
                f"fleet {settings.fleet.name!r}, store {store.target.shown}\n"
                f"metrics at {running.url}/metrics (and /healthz, /readyz); Ctrl-C or SIGTERM ends it"
            )
            signal.sigwait(_ENDS)
    finally:
        store.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
