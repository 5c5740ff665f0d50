"""Kinds made of other kinds: a word instead of a value, lists, tables, JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, TypeVar

from tidegate.config.kind import Kind, Mismatch, dotted
from tidegate.config.sections import Sections

T = TypeVar("T")


def or_word(word: str, inner: Kind[T]) -> Kind[T | None]:
    """`inner`, or `word`, which becomes None (`unlimited`, `none`)."""
    return Kind(
        f'{inner.expected}, or "{word}"',
        lambda raw: None if raw == word else inner.read(raw),
        lambda value: word if value is None else inner.show(value),
        {"anyOf": [{"const": word}, dict(inner.schema)]},
        from_text=lambda given: given if given == word else inner.from_text(given),
        example=inner.example,
    )


def or_infinite(word: str, inner: Kind[float]) -> Kind[float]:
    """`inner`, or `word`, which becomes infinity: for keys whose None already means that nobody said anything."""
    return Kind(
        f'{inner.expected}, or "{word}"',
        lambda raw: inf if raw == word else inner.read(raw),
        lambda value: word if value == inf else inner.show(value),
        {"anyOf": [{"const": word}, dict(inner.schema)]},
        from_text=inner.from_text,
        example=inner.example,
    )


def words_of(item: Kind[T]) -> Kind[tuple[T, ...]]:
    """A list; in the environment its items are separated by commas, or it is a JSON array."""

    def read(raw: Any) -> tuple[T, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError(raw)
        return tuple(_item(item, value, index) for index, value in enumerate(raw))

    return Kind(
        f"a list, each item {item.expected}",
        read,
        lambda values: [item.show(value) for value in values],
        {"type": "array", "items": dict(item.schema)},
        from_text=_list_or_text,
    )


def table_of(item: Kind[T]) -> Kind[Sections[T]]:
    """A table of named values of one kind."""

    def read(raw: Any) -> Sections[T]:
        if not isinstance(raw, Mapping):
            raise ValueError(raw)
        return Sections({str(key): _item(item, value, key) for key, value in raw.items()})

    return Kind(
        f"a table, each value {item.expected}",
        read,
        lambda values: {key: item.show(value) for key, value in values.items()},
        {"type": "object", "additionalProperties": dict(item.schema)},
        from_text=_json_or_text,
    )


def json_value() -> Kind[Any]:
    """Anything that JSON can carry: text, numbers, true and false, lists, tables."""
    return Kind("a value that JSON can carry (no dates, no nan)", _freeze, _thaw, {}, from_text=_json_or_text)


def _item(kind: Kind[T], raw: object, key: object) -> T:
    try:
        return kind.parse(raw)
    except Mismatch as wrong:
        where = f"[{key}]" if isinstance(key, int) else f".{dotted((str(key),))}"
        raise Mismatch(wrong.expected, wrong.got, where + wrong.at, wrong.choices) from None


def _freeze(raw: object) -> Any:
    if raw is None or isinstance(raw, str | bool | int):
        return raw
    if isinstance(raw, float) and isfinite(raw):
        return raw
    if isinstance(raw, list | tuple):
        return tuple(_freeze(item) for item in raw)
    if isinstance(raw, Mapping):
        return Sections({str(key): _freeze(item) for key, item in raw.items()})
    raise ValueError(raw)


def _thaw(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_thaw(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    return value


def _json_or_text(given: str) -> Any:
    try:
        return json.loads(given)
    except ValueError:
        return given


def _list_or_text(given: str) -> Any:
    if given.lstrip().startswith("["):
        return _json_or_text(given)
    return [item.strip() for item in given.split(",") if item.strip()]
