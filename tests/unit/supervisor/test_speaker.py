"""Lines of many on one descriptor: prefixes, and a reader that is slow, gone or shared."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.harness.wait import wait_until

from tidegate.cli import speaker as module
from tidegate.cli.speaker import Speaker


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test has closed it


def everything(reader: int, writer: int) -> str:
    os.close(writer)
    with os.fdopen(reader, "rb", closefd=False) as file:
        return file.read().decode()


def test_who_says_it_stands_in_front_in_columns(pipe: tuple[int, int]) -> None:
    speaker = Speaker(pipe[1], colour=False)
    speaker.introduce(["up", "worker-1"])
    speaker.tell("hello\nthere")
    speaker.say("up", "starts")
    speaker.say("worker-1", "works \udcff")
    speaker.say("stranger", "speaks")
    speaker.close()
    assert everything(*pipe).splitlines() == [
        "hello", "there", "up       | starts", "worker-1 | works \\udcff", "stranger | speaks",
    ]  # fmt: skip


def test_names_have_colours_on_a_terminal(pipe: tuple[int, int]) -> None:
    speaker = Speaker(pipe[1], colour=True)
    speaker.introduce(["up", "beat-1"])
    speaker.say("up", "a")
    speaker.say("beat-1", "b")
    speaker.close()
    first, second = everything(*pipe).splitlines()
    assert first == "\x1b[36mup     |\x1b[0m a"
    assert second == "\x1b[32mbeat-1 |\x1b[0m b"


@pytest.mark.parametrize("blocking", [True, False])
def test_a_reader_that_stands_still_holds_nobody_up(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, blocking: bool
) -> None:
    """Also where the descriptor is shared with somebody who has made it non-blocking."""
    monkeypatch.setattr(module, "ROOM", 300_000)
    os.set_blocking(pipe[1], blocking)
    speaker = Speaker(pipe[1], colour=False)
    for number in range(20_000):
        speaker.say("a", f"{number} {'x' * 50}")  # far more than the pipe and the room together
    speaker.close(timeout=0.05)
    heard = b""

    def read() -> bool:
        nonlocal heard
        heard += os.read(pipe[0], 65_536)
        return b"left out" in heard

    wait_until(read, "the note about what was left out", interval=0)
    lines = heard.decode().splitlines()
    numbers = [int(line.split()[2]) for line in lines if line.startswith("a | ")]
    assert numbers == list(range(len(numbers))), "what is shown is whole and in order"
    assert f"({20_000 - len(numbers)} lines left out" in lines[-1]


def test_a_reader_that_is_gone_swallows_everything(pipe: tuple[int, int]) -> None:
    speaker = Speaker(pipe[1], colour=False)
    os.close(pipe[0])
    for _ in range(10):
        speaker.say("a", "b" * 1000)
    speaker.close(timeout=10)
    speaker.say("a", "after the end")
