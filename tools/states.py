"""docs/states.md: the table of edges of domain/states.py, as a diagram and as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidegate.domain.states import DELAYED_START, EDGES, Event, Reason, State
from tidegate.store.script import all_scripts

_HEAD = """# The states of a job

This page is generated from `app/tidegate/domain/states.py`; `make generate` writes it. Every edge is walked by exactly
one script of the store (two for a give-back), which names it in its header; a test holds the two sets equal.

A job counts against the bounds of its queue and tenant in every state but {finished}.

```mermaid
stateDiagram-v2
"""

_MEANING = {
    State.WAITING: "in the line of its lane",
    State.DELAYED: "its time (eta, countdown) has not come",
    State.RUNNING: "a worker holds a lease on an attempt",
    State.FAILED: "an attempt failed, and nobody has decided yet",
    State.RETRY_WAITING: "an attempt failed; the next one has its time",
    State.SUCCEEDED: "done",
    State.CANCELLED: "ended by a person",
    State.DEAD: "a dead letter: not tried again by itself, kept whole",
}


def as_markdown() -> str:
    """The whole page."""
    lines = [_HEAD.format(finished=_words(state.name for state in State if state.finished))]
    lines += [f"    {_place(start)} --> {end}: {event}\n" for start, event, end, _ in _edges()]
    lines += [f"    {state.name} --> [*]\n" for state in State if state in (State.SUCCEEDED, State.CANCELLED)]
    lines.append("```\n\n| state | letter | a job in it |\n|---|---|---|\n")
    lines += [f"| {state.name} | {state.value} | {_MEANING[state]} |\n" for state in State]
    lines.append("\n| from | event | to | script |\n|---|---|---|---|\n")
    lines += [f"| {start} | {event} | {end} | {by} |\n" for start, event, end, by in _edges()]
    lines.append(
        f"\nReasons, from one list: {_words(f'`{reason.value}`' for reason in Reason if reason.value)}.\n"
    )
    return "".join(lines)


def _edges() -> list[tuple[str, str, str, str]]:
    """(from, event, to, scripts), in the order of the table."""
    scripts: defaultdict[str, list[str]] = defaultdict(list)
    for name, script in all_scripts().items():
        for edge in script.edges:
            scripts[edge].append(f"`{name}`")
    found = []
    for (start, event), end in EDGES.items():
        ends = [end, DELAYED_START] if event is Event.ENQUEUE else [end]
        for to in ends:
            first = start.name if start else "none"
            edge = f"{first} --{event.value}--> {to.name}"
            found.append((first, event.value, to.name, _words(scripts[edge])))
    return found


def _place(start: str) -> str:
    return "[*]" if start == "none" else start


def _words(items: Iterable[str]) -> str:
    return ", ".join(items)
