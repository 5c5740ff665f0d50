"""`tidegate config check | schema`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tidegate.cli.option import config_option, json_option
from tidegate.config import ConfigError, Report, inspect
from tidegate.config.schema import as_text
from tidegate.config.writer import as_mapping


@click.group()
def config() -> None:
    """Check the settings, or print their JSON Schema."""


@config.command()
@config_option
@json_option
def check(config_file: Path | None, as_json: bool) -> None:
    """Read tidegate.toml and the TIDEGATE_* variables, and say everything that is wrong.

    Exit code 0: they can be used (there may be warnings); 4: they cannot.
    """
    report = inspect(config_file)
    if as_json:
        click.echo(json.dumps(_as_dict(report), ensure_ascii=False))
    elif report.settings is not None:
        found = _counted(len(report.warnings), "warning")
        click.echo(f"{report.source or 'no settings file, defaults and environment'}: no faults, {found}")
        for warning in report.warnings:
            click.echo(f"  warning: {warning}")
    if report.settings is None:
        error = ConfigError(str(report.source or ""), report.faults)
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(error.exit_code)


@config.command()
def schema() -> None:
    """Print the JSON Schema of tidegate.toml."""
    click.echo(as_text(), nl=False)


def _counted(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _as_dict(report: Report) -> dict[str, object]:
    return {
        "source": str(report.source) if report.source else None,
        "valid": report.settings is not None,
        "faults": [fault.as_dict() for fault in report.faults],
        "warnings": list(report.warnings),
        "digest": report.settings.digest() if report.settings else None,
        "settings": as_mapping(report.settings, mask=True) if report.settings else None,
    }
