from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.resp import Frames, encode


@pytest.mark.parametrize(
    ("raw", "kind", "value"),
    [
        (b"+OK\r\n", "+", b"OK"),
        (b"-ERR no\r\n", "-", b"ERR no"),
        (b":42\r\n", ":", 42),
        (b"$3\r\na\r\n\r\n", "$", b"a\r\n"),
        (b"$-1\r\n", "$", None),
        (b"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", "*", [1, [b"x"]]),
        (b"*-1\r\n", "*", None),
        (b"%1\r\n+k\r\n:1\r\n", "%", [(b"k", 1)]),
        (b"~1\r\n#t\r\n", "~", [True]),
        (b"_\r\n", "_", None),
        (b">2\r\n+message\r\n+x\r\n", ">", [b"message", b"x"]),
        (b"|1\r\n+ttl\r\n:3\r\n:7\r\n", ":", 7),
        (b"PING\r\n", "inline", [b"PING"]),
    ],
)
def test_one_message_of_each_kind(raw: bytes, kind: str, value: object) -> None:
    (frame,) = Frames().feed(raw)
    assert (frame.raw, frame.kind, frame.value) == (raw, kind, value)


def test_the_name_of_a_command() -> None:
    frames = Frames().feed(encode("evalsha", "abc", "0") + b"ping\r\n")
    assert [frame.command for frame in frames] == ["EVALSHA", "PING"]


@given(
    commands=st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=4), max_size=6),
    sizes=st.lists(st.integers(1, 7), min_size=1),
)
def test_messages_are_the_same_however_their_bytes_arrive(
    commands: list[list[bytes]], sizes: list[int]
) -> None:
    stream = b"".join(encode(*command) for command in commands)
    frames, got, start, turn = Frames(), [], 0, 0
    while start < len(stream):
        size = sizes[turn % len(sizes)]
        got += frames.feed(stream[start : start + size])
        start, turn = start + size, turn + 1
    assert [frame.value for frame in got] == commands
    assert b"".join(frame.raw for frame in got) == stream
    assert frames.pending == b""
