"""Names become words that no key, pattern or list can misread."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.store.keyspace import (
    KEYS,
    Keyspace,
    decode,
    decode_resource,
    digest,
    encode,
    encode_resource,
    lane,
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=64)


@given(names)
def test_a_word_is_safe_and_gives_the_name_back(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.~%@+-]+", encode(name))
    assert decode(encode(name)) == name


@given(names, names)
def test_different_names_are_different_words(one: str, other: str) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@given(names.filter(lambda name: ":" not in name), names)
def test_a_resource_keeps_its_kind_and_has_one_colon(kind: str, rest: str) -> None:
    word = encode_resource(f"{kind}:{rest}")
    assert word == f"{encode(kind)}:{encode(rest)}"
    assert word.count(":") == 1
    assert decode_resource(word) == f"{kind}:{rest}"


@pytest.mark.parametrize(
    "name", ["", "-", "%2D", "%", "a b", "a:b", "{a}", "'\"", "\n", "\0", "~x", "!x", "🦀" * 64]
)
def test_awkward_names(name: str) -> None:
    assert decode(encode(name)) == name


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_a_digest_is_of_the_list_and_not_of_its_text(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


def test_a_lane_is_a_set_of_resources() -> None:
    assert lane("q", "t", ["a", "b", "a"]) == lane("q", "t", ["b", "a"])
    assert len({lane("q", "t", ["a"]), lane("q", "t", ["b"]), lane("q", "t", []), lane("q", "a", ["t"])}) == 4


def test_all_keys_of_a_fleet_share_one_hash_tag() -> None:
    keys = Keyspace("a b{c}")
    assert re.fullmatch(r"\{[^{}]+\}:", keys.prefix)
    assert keys.wake("q:{x}").startswith(keys.prefix)
    assert keys.wake("q:{x}").count("{") == 1


def test_kinds_of_keys_do_not_overlap() -> None:
    heads = [kind.pattern.removesuffix("*") for kind in KEYS]
    assert len(set(heads)) == len(heads)
    assert all(":" not in head.removesuffix(":") for head in heads)


def test_every_kind_says_what_ends_it() -> None:
    for kind in KEYS:
        assert re.match(r"(fleet|ttl|while|until)\b", kind.lifetime), kind
