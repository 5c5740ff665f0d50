"""Options that every command has (DESIGN §9): `--config FILE` and `--json`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_JSON = "tidegate.json"


def config_option(command: F) -> F:
    """Adds `--config FILE`; the command gets `config_file: Path | None` for `tidegate.config.load`."""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings file; else TIDEGATE_CONFIG, else tidegate.toml here.",
    )(command)


def json_option(command: F) -> F:
    """Adds `--json`; the command gets `as_json: bool`, and its errors are printed as JSON too."""
    return click.option(
        "--json", "as_json", is_flag=True, callback=_remember, is_eager=True, help="Print one JSON document."
    )(command)


def actor_options(command: F) -> F:
    """Adds `--reason` and `--by`, for commands that change something: both go into the audit log."""
    by = click.option("--by", metavar="NAME", help="Who does it; else TIDEGATE_ACTOR, else the OS user.")
    why = click.option("--reason", "why", metavar="TEXT", help="Why, for the audit log.")
    return why(by(command))


def wants_json(ctx: click.Context) -> bool:
    """True if the command that runs was given `--json`."""
    return bool(ctx.find_root().meta.get(_JSON))


def _remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    ctx.find_root().meta[_JSON] = value
    return value
