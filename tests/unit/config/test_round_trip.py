"""Any subset of the keys, with any legal values: what is written back reads as the same settings."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.config import Settings
from tidegate.config.field import Branch, Leaf, declarations
from tidegate.config.kind import Mismatch, dotted, quoted
from tidegate.config.lines import key_lines
from tidegate.config.reader import Reading
from tidegate.config.schema import as_schema
from tidegate.config.writer import as_mapping

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
JSON = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), NAMES
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
    max_leaves=4,
)

#: spellings of values that have a pattern; each key is given those that it accepts
SPELLINGS = (
    "1ms", "250ms", "0.5s", "1.5s", "30s", "90s", "10m", "2h", "1d", 0, 1, 15, 0.25, 3600.5, 1e-3,
    "0B", "10KB", "64KiB", "256MiB", "2GiB", "1TiB", 2**20,
    "1/s", "7/h", "0.5/s", "1.25/m", "100/d", "90000/m", "0.000001/h",
    "same", "none", "embedded", "redis://localhost/0", "unix:///run/x.sock", "", "a.b", "a.b:c", "[::1]:80", "x-1.y_2",
)  # fmt: skip


def legal(leaf: Leaf) -> st.SearchStrategy[Any]:
    """Values that the key accepts."""
    return shaped(leaf.kind.schema, leaf.kind.read)


def shaped(schema: Mapping[str, Any], read: Callable[[Any], object]) -> st.SearchStrategy[Any]:
    """Values of a shape of the JSON Schema; where the shape is a pattern, the spellings that `read` accepts."""
    if "anyOf" in schema:
        return st.one_of([shaped(option, read) for option in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case None:
            return JSON
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema["minimum"], schema["maximum"])
        case "number":
            return st.floats(schema["minimum"], schema["maximum"])
        case "array":
            return st.lists(shaped(schema["items"], lambda item: read([item])), max_size=2)
        case "object":
            inner = shaped(schema["additionalProperties"], lambda item: read({"x": item}))
            return st.dictionaries(NAMES, inner, max_size=2)
        case "string" if "pattern" not in schema:
            return NAMES
        case _:
            return st.sampled_from([spelling for spelling in SPELLINGS if accepts(read, spelling)])


def accepts(read: Callable[[Any], object], raw: object) -> bool:
    try:
        read(raw)
    except (ValueError, Mismatch):
        return False
    return True


def tables(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    """Tables with any subset of the keys of a settings class."""
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for key, declared in declarations(cls).items():
        if isinstance(declared, Branch):
            inner = tables(declared.record)
            optional[key] = st.dictionaries(NAMES, inner, max_size=2) if declared.named else inner
        elif not declared.at:
            optional[key] = legal(declared)
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
    return quoted(value) if isinstance(value, str) else json.dumps(value)


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
        st.one_of(NAMES, st.integers(), st.floats(), st.booleans()),
        lambda inner: st.dictionaries(NAMES, inner, max_size=3),
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
