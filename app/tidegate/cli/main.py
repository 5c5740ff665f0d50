"""The `tidegate` command: one click group. A subcommand is one line in COMMANDS and a file of its own."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, cast

import click

from tidegate import __version__
from tidegate.cli.lifeline import end_with_parent
from tidegate.cli.option import wants_json
from tidegate.domain.errors import TidegateError

#: name → where its click command is; imported when asked for, so that `config check` does not wait for Celery
COMMANDS = {
    "beat": "tidegate.cli.beat:beat",
    "config": "tidegate.cli.config:config",
    "demo": "tidegate.cli.demo:demo",
    "dlq": "tidegate.cli.dlq:dlq",
    "doctor": "tidegate.cli.doctor:doctor",
    "enqueue": "tidegate.cli.enqueue:enqueue",
    "exporter": "tidegate.cli.exporter:exporter",
    "schedules": "tidegate.cli.schedules:schedules",
    "status": "tidegate.cli.status:status",
    "top": "tidegate.cli.top:top",
    "up": "tidegate.cli.up:up",
    "worker": "tidegate.cli.worker:worker",
}


class CommandLine(click.Group):
    """Finds subcommands by COMMANDS, and turns every TidegateError into its message and its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def invoke(self, ctx: click.Context) -> Any:
        words = [*ctx._protected_args, *ctx.args]  # what was typed: click empties both
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # an unknown option ends the parsing before --json is read
            if wants_json(ctx) or "--json" in words:
                click.echo(
                    json.dumps({"error": "usage", "message": error.format_message()}, ensure_ascii=False)
                )
            raise
        except TidegateError as error:
            if wants_json(ctx):
                click.echo(json.dumps(error.as_dict(), ensure_ascii=False, default=str))
            click.echo(str(error), err=True)
            ctx.exit(error.exit_code)


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tidegate", message="%(prog)s %(version)s")
@click.option("--ends-with", type=int, metavar="PID", hidden=True, help="Stop when this parent is gone.")
def main(ends_with: int | None) -> None:
    """Backpressure for Celery.

    Exit codes: 0 done, 1 refused or nothing matched, 2 usage, 3 store unreachable, 4 configuration.
    """
    if ends_with is not None:
        end_with_parent(ends_with)
