"""Any subset of the keys, with any legal values: what is written back reads as the same settings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.config import Settings
from tidegate.config.field import Branch, Leaf, declarations
from tidegate.config.kind import Mismatch, dotted
from tidegate.config.lines import key_lines
from tidegate.config.reader import Reading
from tidegate.config.schema import as_schema
from tidegate.config.writer import as_mapping

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
DURATIONS = st.one_of(
    st.builds("{}{}".format, st.integers(1, 500), st.sampled_from(["ms", "s", "m", "h"])),
    st.floats(0.5, 500, allow_nan=False),
    st.integers(1, 500),
)
SIZES = st.one_of(
    st.builds("{}{}".format, st.integers(1, 99), st.sampled_from(["KiB", "MB", "GiB"])),
    st.integers(2**10, 2**40),
)
RATES = st.builds(
    "{}/{}".format, st.sampled_from(["1", "7", "0.5", "1.25", "100", "90000"]), st.sampled_from("smhd")
)
NUMBERS = st.one_of(st.integers(0, 10_000), st.floats(0, 100, allow_nan=False))
JSON = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), NAMES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=4,
)
GUESSES = st.one_of(
    DURATIONS, SIZES, RATES, NUMBERS, st.booleans(), NAMES, JSON, st.lists(NAMES, max_size=2),
    st.dictionaries(NAMES, RATES, max_size=2),
    st.sampled_from(["unlimited", "none", "never", "same", "embedded", "redis://localhost/0", "a.b:c", "127.0.0.1:80"]),
)  # fmt: skip


def legal(leaf: Leaf) -> st.SearchStrategy[Any]:
    """Values that the key accepts."""
    if leaf.kind.choices:
        return st.sampled_from(leaf.kind.choices)

    def accepted(raw: object) -> bool:
        try:
            leaf.kind.read(raw)
        except (ValueError, Mismatch):
            return False
        return True

    shown = None if leaf.unset else leaf.kind.show(leaf.default)
    guesses = GUESSES.filter(accepted)
    return guesses if shown is None else st.one_of(st.just(shown), guesses)


def tables(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    """Tables with any subset of the keys of a settings class."""
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for key, declared in declarations(cls).items():
        if isinstance(declared, Branch):
            inner = tables(declared.record)
            optional[key] = st.dictionaries(NAMES, inner, max_size=2) if declared.named else inner
        elif not declared.at:
            optional[key] = st.deferred(lambda leaf=declared: legal(leaf))  # type: ignore[misc]
    return st.fixed_dictionaries({}, optional=optional)


def as_toml(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A TOML document, each table with a header of its own."""
    simple = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"[{dotted(path)}]"] if path else []
    lines += [f"{dotted((key,))} = {literal(value)}" for key, value in simple.items()]
    nested = [as_toml(value, (*path, key)) for key, value in values.items() if key not in simple]
    return "\n".join([*lines, *nested])


def literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{dotted((key,))} = {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


WHOLE = tables(Settings)


@given(WHOLE)
def test_written_back_it_reads_the_same(raw: dict[str, Any]) -> None:
    reading = Reading(Settings)
    first = reading.build(Settings, raw)
    assert reading.faults == []
    again = Reading(Settings)
    assert again.build(Settings, as_mapping(first)) == first
    assert again.faults == []
    assert as_mapping(again.build(Settings, as_mapping(first))) == as_mapping(first)


@settings(max_examples=40)
@given(WHOLE)
def test_as_a_file_too_and_each_key_has_its_line(raw: dict[str, Any]) -> None:
    read = Reading(Settings).build(Settings, raw)
    document = as_toml(as_mapping(read))
    assert Reading(Settings).build(Settings, tomllib.loads(document)) == read
    lines, texts = key_lines(document), document.split("\n")
    for path, value in flat(tomllib.loads(document)):
        written = texts[lines[path] - 1]
        if isinstance(value, Mapping):
            assert dotted(path) in written
        else:
            assert written == f"{dotted(path[-1:])} = {literal(value)}"


def flat(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in values.items():
        found.append(((*path, key), value))
        if isinstance(value, Mapping):
            found += flat(value, (*path, key))
    return found


@given(WHOLE)
def test_the_json_schema_accepts_what_we_accept(raw: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(as_schema()).validate(raw)


@given(
    st.recursive(
        st.one_of(NAMES, NUMBERS, st.booleans()), lambda inner: st.dictionaries(NAMES, inner, max_size=3)
    )
)
def test_nonsense_is_faults_and_never_an_exception(raw: object) -> None:
    for tables_of_nonsense in (
        raw,
        {"queues": raw, "worker": raw, "tasks": {"a": raw}, "retry": {"budget": raw}},
    ):
        reading = Reading(Settings)
        reading.build(Settings, tables_of_nonsense)
        assert all(str(fault) for fault in reading.faults)
