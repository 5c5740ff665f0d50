"""`tidegate beat`: becomes the beat process, which the fleet starts and never imports."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tidegate.cli.option import config_option


@click.command()
@config_option
@click.option(
    "-l",
    "--loglevel",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
)
def beat(config_file: Path | None, loglevel: str) -> None:
    """Start what schedules have due, decide about failed attempts, judge leases. Any number may run at once."""
    arguments = [sys.executable, "-m", "tidegate_beat", "--loglevel", loglevel.lower()]
    if config_file is not None:
        arguments += ["--config", str(config_file)]
    os.execv(sys.executable, arguments)
