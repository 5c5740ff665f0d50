"""Bytes of a process become lines that do no harm, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.supervisor.lines import LIMIT, Lines


def read(*chunks: bytes) -> list[str]:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return found + lines.end()


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"no end", ["no end"]),
        (b"\n\n", ["", ""]),
        (b"from Windows\r\n", ["from Windows"]),
        (b"10 %\r20 %\r30 %\n", ["10 %", "20 %", "30 %"]),
        ("grün ⏳\n".encode(), ["grün ⏳"]),
        (b"not \xff UTF-8 \xc3\n", ["not \\xff UTF-8 \\xc3"]),
        (b"\x1b[2J\x07 a\tb \x7f\x00\n", ["\\x1b[2J\\x07 a\tb \\x7f\\x00"]),
        ("\x9b2J\n".encode(), ["\\x9b2J"]),
        (b"", []),
    ],
)
def test_lines(raw: bytes, lines: list[str]) -> None:
    assert read(raw) == lines
    assert read(*(raw[i : i + 1] for i in range(len(raw)))) == lines, "one byte at a time"


def test_a_line_is_shown_when_it_is_whole() -> None:
    lines = Lines()
    assert lines.feed(b"a") == []
    assert lines.feed(b"b\nc") == ["ab"]
    assert lines.end() == ["c"]
    assert lines.end() == []


@pytest.mark.parametrize("text", ["x" * 100_000, "é" * 50_000, "x" + "⏳" * 30_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_line_comes_in_pieces_and_nothing_of_it_is_lost(text: str, end: str) -> None:
    raw = (text + end).encode()
    for chunk in (4096, 65_536, len(raw)):
        found = read(*(raw[i : i + chunk] for i in range(0, len(raw), chunk)))
        assert "".join(found) == text
        assert max(len(line.encode()) for line in found) <= LIMIT


def test_a_stream_without_line_ends_is_not_kept() -> None:
    lines = Lines()
    kept = 0
    for _ in range(1000):
        kept += 65_536 - sum(map(len, lines.feed(b"x" * 65_536)))
    assert kept <= LIMIT


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_control_character_comes_through(chunks: list[bytes]) -> None:
    for line in read(*chunks):
        assert all(character == "\t" or character.isprintable() or ord(character) > 159 for character in line)
