"""Ids: version 7 UUIDs, ids that follow from a key, and keys of several fields."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain import identity
from tidegate.domain.errors import InvalidJob

CHANCE = st.binary(min_size=10, max_size=10)
MS = st.integers(0, 2**48 - 1)
TEXT = st.text(min_size=1, max_size=20)


@given(MS, CHANCE)
def test_uuid7_says_version_variant_and_time(now_ms: int, chance: bytes) -> None:
    made = UUID(identity.uuid7(now_ms, chance))
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == now_ms


@given(MS, MS, CHANCE, CHANCE)
def test_uuid7_sorts_by_time(first: int, second: int, one: bytes, two: bytes) -> None:
    if first != second:
        assert (identity.uuid7(first, one) < identity.uuid7(second, two)) == (first < second)


def test_uuid7_wants_ten_random_bytes() -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        identity.uuid7(1, b"123")


@given(st.tuples(TEXT, TEXT, TEXT, TEXT), st.tuples(TEXT, TEXT, TEXT, TEXT))
def test_keyed_ids_are_equal_only_for_equal_fields(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    assert (identity.keyed_task_id(*one) == identity.keyed_task_id(*two)) == (one == two)


def test_fields_are_never_joined() -> None:
    assert identity.keyed_task_id("f", "a:b", "c", "k") != identity.keyed_task_id("f", "a", "b:c", "k")


def test_ids_of_different_meaning_never_meet() -> None:
    made = {
        identity.group_operation_id("f", "x"),
        identity.operation_task_id("f", "x"),
        identity.callback_task_id("x", ()),
        identity.derived("f", "task", "x"),
    }
    assert len(made) == 4


def test_ids_do_not_change_between_releases() -> None:
    """Stored keys and running canvases depend on them."""
    assert (
        identity.keyed_task_id("default", "acme", "reports.fetch", "k")
        == "e70e6552-9a4c-515a-bef1-f159440251ff"
    )
    assert identity.group_operation_id("default", "g") == "6dcd6b3b-7b0c-5ba0-8a3e-6ba42bf31305"
    assert identity.callback_task_id("p", ("callbacks", 0)) == "c27aadad-b66b-543c-9fdc-bd153d694f77"


@given(st.lists(TEXT | st.integers() | st.booleans() | st.none(), min_size=1, max_size=4))
def test_a_structured_key_is_a_canonical_json_array(fields: list[object]) -> None:
    text = identity.canonical(fields)
    if len(text.encode()) <= 256:
        assert identity.key_text(fields) == identity.key_text(tuple(fields)) == text
        assert json.loads(text) == fields


@pytest.mark.parametrize("key", ["", "k" * 257, 7, 1.5, {"a": 1}, ["a", 1.5], ["a", ["b"]], None, b"k"])
def test_other_keys_are_refused(key: object) -> None:
    with pytest.raises(InvalidJob) as raised:
        identity.key_text(key)
    assert raised.value.where.startswith("idempotency_key")


@given(st.dictionaries(TEXT, st.integers(), max_size=5))
def test_canonical_form_does_not_depend_on_order(mapping: dict[str, int]) -> None:
    backwards = dict(reversed(mapping.items()))
    assert identity.canonical(mapping) == identity.canonical(backwards)


def test_step_names() -> None:
    assert identity.step_of("t") == "t"
    assert identity.step_of("t", 2) == "t:2"
