"""`tidegate dlq replay`: one dead letter at once; several after a look at what that would mean."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from tidegate.cli.enqueue import Time
from tidegate.cli.option import actor_options, config_option, json_option
from tidegate.config import Settings, load
from tidegate.domain.errors import InvalidJob
from tidegate.service import dead_letter as service
from tidegate.service.actor import Actor, actor
from tidegate.service.pick import Filter, Plan
from tidegate.service.replay import Pace, Result
from tidegate.worker.said import duration_ms


@click.command()
@config_option
@json_option
@actor_options
@click.argument("operation", required=False)
@click.option("--step", default="", help="Step of a canvas; none for a lone job.")
@click.option("--all", "everything", is_flag=True, help="Every dead letter.")
@click.option("--queue", help="Those of a queue.")
@click.option("--tenant", help="Those of a tenant.")
@click.option("--task", metavar="PATTERN", help="Those of a task; `*` and `?` stand for any characters.")
@click.option("--died-of", metavar="REASON", help="Those with this reason of death, such as max_retries.")
@click.option("--since", type=Time(), help="Those that died in this time: 90s, 10m, 2h.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="So many per second at most.")
@click.option("--max", "most", type=click.IntRange(1), help="So many in all at most.")
@click.option("--apply", "act", is_flag=True, help="Do it; without it the plan is shown and nothing changes.")
def replay(
    config_file: Path | None,
    as_json: bool,
    operation: str | None,
    step: str,
    everything: bool,
    rate: float | None,
    most: int | None,
    act: bool,
    by: str | None,
    why: str | None,
    since: Any,
    **said: str | None,
) -> None:
    """Send dead letters back to their queues, with all their attempts before them.

    One, named by its OPERATION, goes at once. For several, say which (--all, or any of the filters): the plan is shown,
    and --apply carries it out, tenants in turn, as long as there is room. No replay makes a queue red.

    Exit code 0: all that were meant have been replayed, or the plan was shown; 1: some were not, or nothing matched.
    """
    settings, who = load(config_file), actor(by, why)
    some = since is not None or any(value is not None for value in said.values())
    if (operation is not None) + everything + some != 1:
        raise click.UsageError("name one OPERATION, or say --all, or use filters")
    if operation is not None:
        _one(settings, operation, step, who, as_json)
        return
    plan = service.plan(settings, Filter(**said, since_ms=_milliseconds(since)))
    if not plan.deaths:
        click.echo(json.dumps(plan.as_dict()) if as_json else "no dead letter matches")
        click.get_current_context().exit(1)
    if not act:
        _show(plan, as_json)
        return
    _end(service.replay(settings, plan, who, Pace(rate, most), _progress), len(plan.deaths), as_json)


def _one(settings: Settings, operation: str, step: str, who: Actor, as_json: bool) -> None:
    result = service.replay_one(settings, operation, step, who)
    if result is None:
        message = f"no dead letter of operation {operation!r}; `tidegate dlq list` shows those there are"
        click.echo(message, err=True)
        click.get_current_context().exit(1)
    _end(result, 1, as_json)


def _milliseconds(since: Any) -> int:
    if since is None:
        return 0
    try:
        return round(duration_ms(since, "since"))
    except InvalidJob as error:
        raise click.BadParameter(str(error), param_hint="--since") from error


def _show(plan: Plan, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(plan.as_dict(), ensure_ascii=False))
        return
    click.echo(f"{len(plan.deaths)} dead letters match")
    for field in ("tenant", "queue", "task", "reason"):
        counts = plan.counts(field).most_common(10)
        click.echo(f"  by {field:<7} " + ", ".join(f"{name} {number}" for name, number in counts))
    if plan.expired:
        click.echo(f"  {plan.expired} are past their deadline and stay")
    for queue, jobs in plan.room.items():
        click.echo(f"  queue {queue} has room for {jobs} before it is red")
    click.echo("nothing has changed; --apply replays them")


def _progress(done: int, of: int, words: Counter[str]) -> None:
    click.echo(f"{done} of {of}, {words['ok']} replayed", err=True)


def _end(result: Result, matched: int, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"matched": matched, **result.as_dict()}, ensure_ascii=False))
    else:
        click.echo(f"{result.replayed} of {matched} replayed, {result.left} left")
        for word, number in sorted(result.words.items()):
            if word != "ok":
                click.echo(f"  {number} stay: {_MEANING.get(word, word)}")
        for scope, seconds in result.stopped.items():
            again = f"no room in {scope}; try again in {seconds:g} s" if seconds else f"{scope} is closed"
            click.echo(f"  {again}")
    if result.replayed < matched:
        click.get_current_context().exit(1)


_MEANING = {
    "gone": "no dead letter any more",
    "changed": "replayed meanwhile, and dead again",
    "expired": "past its deadline",
    "conflict": "its idempotency key belongs to another operation by now",
}
