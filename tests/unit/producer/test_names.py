"""Names are any Unicode text of 1 to 256 bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidJob
from tidegate.domain.names import MAX_NAME_BYTES, checked_name


@given(st.text(min_size=1, max_size=64))
def test_any_text_is_a_name(text: str) -> None:
    assert checked_name(text, "tenant") is text


@pytest.mark.parametrize("text", ["a" * 256, "ü" * 128, "😀" * 64, "a:b {c} 'd'\n\0"])
def test_the_limit_counts_bytes(text: str) -> None:
    assert len(text.encode()) <= MAX_NAME_BYTES
    assert checked_name(text, "queue") == text


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "empty"),
        ("a" * 257, "257 bytes"),
        ("ü" * 129, "258 bytes"),
        ("x\ud800", "a lone surrogate at character 1"),
        (7, "of type int"),
        (None, "of type NoneType"),
        (b"x", "of type bytes"),
    ],
)
def test_refused_names_say_where_and_why(value: object, what: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        checked_name(value, "tenant")
    assert (raised.value.where, raised.value.what, raised.value.exit_code) == ("tenant", what, 2)
