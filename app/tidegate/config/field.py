"""How a settings class declares its keys: kind, default, meaning, and whether this release acts on the key.

The dataclasses in `model` and what it imports are the only list of keys; reading, writing, the environment, the JSON
Schema and docs/settings.md are derived from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from tidegate.config.kind import Kind
from tidegate.config.sections import Sections

T = TypeVar("T")
_KEY = "tidegate"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A key with a value.

    unset: the default is that nobody has given a value, and None says so;
    later: parsed and checked, but this release does not act on it yet, except where the value is `acted_on`;
    secret: the value is never shown; at: the key's path, where it is not its attribute's name.
    """

    kind: Kind[Any]
    default: Any
    unset: bool
    doc: str
    later: bool
    acted_on: Any
    secret: bool
    at: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A table: one record, or (`named`) any number of named ones; `inherits`: `default` is the base of the others."""

    record: type
    doc: str
    named: bool
    inherits: bool
    later: bool


Declaration = Leaf | Branch


def setting(
    kind: Kind[T],
    default: object,
    doc: str,
    *,
    later: bool = False,
    acted_on: object = None,
    secret: bool = False,
    at: tuple[str, ...] = (),
) -> T:
    """Declares a key. `default` is written as in the file; None: no value until somebody gives one."""
    value = None if default is None else kind.parse(default)
    leaf = Leaf(kind, value, default is None, doc, later, acted_on, secret, at)
    return cast(T, dataclasses.field(default=value, repr=not secret, metadata={_KEY: leaf}))


def optional(kind: Kind[T], doc: str, *, later: bool = False) -> T | None:
    """Declares a key without a default."""
    return cast("T | None", setting(kind, None, doc, later=later))


def record(cls: type[T], doc: str, *, later: bool = False) -> T:
    """Declares a table with fixed keys."""
    branch = Branch(cls, doc, named=False, inherits=False, later=later)
    return dataclasses.field(default_factory=cls, metadata={_KEY: branch})


def named(cls: type[T], doc: str, *, inherits: bool = False, later: bool = False) -> Sections[T]:
    """Declares a table of named tables."""
    branch = Branch(cls, doc, named=True, inherits=inherits, later=later)

    def initial() -> Sections[T]:
        return Sections({"default": cls()} if inherits else {})

    return dataclasses.field(default_factory=initial, metadata={_KEY: branch})


def declarations(cls: type) -> Mapping[str, Declaration]:
    """The keys of a settings class, in order."""
    return {item.name: item.metadata[_KEY] for item in dataclasses.fields(cls) if _KEY in item.metadata}


def inherited(cls: type, raw: object) -> tuple[str, ...]:
    """The keys that a named section takes from `default`: not those whose meaning hangs on one that it gives itself
    (`FOLLOWS`: the default section's burst says nothing about another rate)."""
    follows: Mapping[str, str] = getattr(cls, "FOLLOWS", {})
    return tuple(
        key for key in declarations(cls) if not (isinstance(raw, Mapping) and follows.get(key) in raw)
    )


def leaves(cls: type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Leaf]]:
    """Every key below `cls` that has a fixed path; of inheriting named tables their `default`."""
    for key, declared in declarations(cls).items():
        if isinstance(declared, Leaf):
            yield declared.at or (*path, key), declared
        elif not declared.named:
            yield from leaves(declared.record, (*path, key))
        elif declared.inherits:
            yield from leaves(declared.record, (*path, key, "default"))
