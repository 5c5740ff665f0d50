"""Ids inside a canvas: which steps a message carries with it, and giving an id to those that Celery leaves without one.

Celery freezes the ids of a chain, a group and a chord when they are sent; found by running all shapes of canvas on
Celery 5.7: a chain's next steps, the members and the body of a chord, callbacks after `replace` keep their ids
until they are published, however often. Only callbacks (`link`, `link_error`) get a fresh id at each publish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegate.domain.identity import callback_task_id

Signature = Mapping[str, Any]

#: parts of a message (Celery's protocol 2, third element of the body) that hold signatures
EMBEDDED = ("callbacks", "errbacks", "chain", "chord")
_CACHE = "_tidegate_frozen"


def frozen_ids(request: Any) -> frozenset[str]:
    """Ids of all steps that follow the running task of `request` (its Celery context), found once per run."""
    known: frozenset[str] | None = request.__dict__.get(_CACHE)
    if known is None:
        known = frozenset(_ids(getattr(request, name, None) for name in EMBEDDED))
        request.__dict__[_CACHE] = known
    return known


def is_canvas(embed: Mapping[str, Any]) -> bool:
    """True if other steps follow this message."""
    return any(embed.get(name) for name in EMBEDDED)


def outermost_group(group: str | None, embed: Mapping[str, Any]) -> str | None:
    """The group that a message belongs to in the end: the chord it counts for may be a member of another one, and the
    first step of a chain that is a member of a group does not name the group, what the chain ends with does."""
    chain = embed.get("chain")
    last = chain[0] if chain else None  # in reverse order
    chord = embed.get("chord")
    while True:
        if last is not None:
            last = _end(last)
            group, chord = _option(last, "group_id") or group, _option(last, "chord") or chord
        if chord is None:
            return group
        last, chord = chord, None


def _end(signature: Signature) -> Signature:
    """The task that a signature ends with: the last step behind it, the last one of a chain, the body of a chord."""
    while True:
        kwargs, kind = signature.get("kwargs") or {}, signature.get("subtask_type")
        if behind := _option(signature, "chain"):
            inner = behind[0]  # in reverse order
        elif kind == "chain" and kwargs.get("tasks"):
            inner = kwargs["tasks"][-1]
        elif kind == "chord":
            inner = kwargs.get("body")
        else:
            return signature
        if not isinstance(inner, Mapping):
            return signature
        signature = inner


def freeze_callbacks(embed: dict[str, Any], task_id: str) -> None:
    """Give each callback in `embed` an id that follows from its parent's: a parent that runs twice publishes it once.

    The caller's signatures are not changed: `embed` gets copies.
    """
    for name in ("callbacks", "errbacks"):
        if signatures := embed.get(name):
            embed[name] = [
                _frozen(signature, task_id, (name, index)) if isinstance(signature, Mapping) else signature
                for index, signature in enumerate(signatures)
            ]


def _frozen(signature: Signature, parent: str, path: tuple[str | int, ...]) -> Signature:
    kwargs = dict(signature.get("kwargs") or {})
    options = dict(signature.get("options") or {})
    for part in ("tasks", "header"):
        if members := kwargs.get(part):
            kwargs[part] = _frozen_members(members, parent, (*path, part))
    if isinstance(kwargs.get("body"), Mapping) and signature.get("subtask_type") == "chord":
        kwargs["body"] = _frozen(kwargs["body"], parent, (*path, "body"))
    if not options.get("task_id"):
        options["task_id"] = callback_task_id(parent, path)
    if signature.get("subtask_type") == "chain" and isinstance(kwargs.get("tasks"), list) and kwargs["tasks"]:
        options["task_id"] = kwargs["tasks"][-1]["options"][
            "task_id"
        ]  # as Celery does: a chain is its last step
    return {**signature, "kwargs": kwargs, "options": options}


def _frozen_members(members: Any, parent: str, path: tuple[str | int, ...]) -> Any:
    if isinstance(members, Mapping):
        return _frozen(members, parent, path)
    if isinstance(members, Sequence) and not isinstance(members, str):
        return [
            _frozen(member, parent, (*path, index)) if isinstance(member, Mapping) else member
            for index, member in enumerate(members)
        ]
    return members


def _ids(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            task_id = _option(value, "task_id")
            if isinstance(task_id, str) and "task" in value:
                yield task_id
            yield from _ids(value.values())
        elif isinstance(value, list | tuple):
            yield from _ids(value)


def _option(signature: Signature, name: str) -> Any:
    options = signature.get("options")
    return options.get(name) if isinstance(options, Mapping) else None
