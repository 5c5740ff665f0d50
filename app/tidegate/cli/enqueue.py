"""`tidegate enqueue TASK`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click

from tidegate.cli.option import config_option, json_option
from tidegate.client.request import Options
from tidegate.config import load
from tidegate.service import enqueue as service


class Json(click.ParamType):  # type: ignore[type-arg]  # no parameter before click 8.2
    """One JSON value of a certain kind."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, self.kind):
            return value
        try:
            found = json.loads(value)
        except (ValueError, RecursionError) as error:
            self.fail(f"not JSON: {error}", param, ctx)
        if not isinstance(found, self.kind):
            self.fail(f"expected a {self.name}, got {value}", param, ctx)
        return found


class Number(click.ParamType):  # type: ignore[type-arg]  # no parameter before click 8.2
    """Text, or a whole number where it is one: priorities have both forms."""

    name = "word or number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


class Time(click.ParamType):  # type: ignore[type-arg]  # no parameter before click 8.2
    """A duration: seconds as a number, or text with a unit; other text is left to the service."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return float(value)
        except ValueError:
            return value


@click.command()
@click.argument("task")
@click.option(
    "--args", type=Json(list, "JSON array"), default="[]", help="Positional arguments, a JSON array."
)
@click.option(
    "--kwargs", type=Json(dict, "JSON object"), default="{}", help="Keyword arguments, a JSON object."
)
@click.option("--queue", help="A declared queue, if not the task's.")
@click.option("--tenant", help="Whose job it is.")
@click.option("--priority", type=Number(), help="low, normal, high, urgent, or Celery's 0 to 9.")
@click.option("--key", "idempotency_key", help="Idempotency key: the same key again is the same job.")
@click.option("--operation-id", help="Name of the operation; named twice it is the same job.")
@click.option("--delay", type=Time(), help="Not before this time has passed: 90, 90s, 10m, 2h.")
@click.option("--queue-timeout", type=Time(), help="Longest wait in the queue.")
@click.option("--deadline", type=Time(), help="ISO 8601 time with an offset, or a duration from now.")
@config_option
@json_option
def enqueue(
    task: str,
    args: list[Any],
    kwargs: dict[str, Any],
    config_file: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Offer one job to the fleet.

    Exit code 0: the store has it (accepted, or a duplicate of one it had); 1: it was refused (full, closed, conflict);
    2: the job is invalid; 3: the store cannot be reached.
    """
    said = cast("Options", {name: value for name, value in options.items() if value is not None})
    receipt = service.enqueue(load(config_file), task, args, kwargs, said)
    if as_json:
        click.echo(json.dumps(receipt.as_dict(), ensure_ascii=False))
        return
    click.echo(f"{receipt.status}  operation {receipt.operation_id}  task {receipt.task_id}")
    if receipt.status == "accepted":
        click.echo(f"queue {receipt.queue}: position {receipt.position}, pressure {receipt.pressure}")
