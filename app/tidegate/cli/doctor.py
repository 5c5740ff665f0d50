"""`tidegate doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tidegate.cli.option import config_option, json_option
from tidegate.config import load
from tidegate.domain.errors import StoreUnavailable
from tidegate.service import doctor as service
from tidegate.service.diagnosis import Finding, Level

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.FAILURE: "red"}


@click.command()
@config_option
@json_option
def doctor(config_file: Path | None, as_json: bool) -> None:
    """Look at settings, store, workers and beat, and say what is wrong and what to do. Starts and changes nothing.

    Exit code 0: nothing has to be mended (there may be warnings); 1: something has; 3: the store cannot be reached.
    """
    found = service.examine(load(config_file))
    if as_json:
        click.echo(json.dumps(found.as_dict(), ensure_ascii=False))
    for one in () if as_json else found.findings:
        click.echo(_line(one))
    if not found.healthy:
        click.get_current_context().exit(1 if found.reachable else StoreUnavailable.exit_code)


def _line(one: Finding) -> str:
    word = click.style(f"{one.level.value:<8}", fg=_COLOURS[one.level])
    remedy = f"\n{'':<22}→ {one.remedy}" if one.remedy else ""
    return f"{word} {one.name:<12} {one.found}{remedy}"
