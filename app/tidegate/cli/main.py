"""The `tidegate` command: one click group; each subcommand lives in a file of its own."""

from __future__ import annotations

import click

from tidegate import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidegate", message="%(prog)s %(version)s")
def main() -> None:
    """Backpressure for Celery."""
