"""Lines of many processes on one terminal, each with who says it, and nobody waits for the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Sequence

import click

#: bytes that may wait for a terminal that stands still (Ctrl-S, a pager); more lines are left out and counted
ROOM = 4 << 20

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
_BATCH = 65_536  # bytes of one write


class Speaker:
    """`worker-1 | …` on a descriptor, from a thread of its own. colour: of the names, where the terminal has it.

    A descriptor that nobody reads any more (a closed terminal, `| head`) swallows everything from then on: the fleet
    does not end because nobody listens.
    """

    def __init__(self, descriptor: int, *, colour: bool) -> None:
        self._descriptor, self._colour = descriptor, colour
        self._prefixes: dict[str, str] = {}
        self._waiting: deque[bytes] = deque()
        self._size = self._left_out = 0
        self._ended = self._deaf = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_all, name="tidegate-speaker", daemon=True)
        self._thread.start()

    def introduce(self, names: Sequence[str]) -> None:
        """Who is going to speak: names in columns, each in a colour of its own."""
        width = max(map(len, names))
        self._prefixes = {
            name: _prefix(name.ljust(width), _COLOURS[number % len(_COLOURS)] if self._colour else None)
            for number, name in enumerate(names)
        }

    def say(self, name: str, line: str) -> None:
        """Never waits, never raises."""
        self._put(f"{self._prefixes.get(name, name + ' | ')}{line}\n".encode(errors="backslashreplace"))

    def tell(self, text: str) -> None:
        """Lines of nobody in particular, as they are."""
        self._put(f"{text}\n".encode(errors="backslashreplace"))

    def close(self, timeout: float = 2.0) -> None:
        """Waits for what has been said, at most `timeout` seconds."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(timeout)

    def _put(self, raw: bytes) -> None:
        with self._changed:
            if self._deaf:
                return
            if self._size + len(raw) > ROOM:
                self._left_out += 1
                return
            self._confess()
            self._append(raw)
            self._changed.notify()

    def _confess(self) -> None:
        if self._left_out:
            count, self._left_out = self._left_out, 0
            self._append(f"({count} lines left out: they were not read fast enough)\n".encode())

    def _append(self, raw: bytes) -> None:
        self._waiting.append(raw)
        self._size += len(raw)

    def _write_all(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._write(batch)
            except OSError:
                with self._changed:
                    self._deaf = True
                    self._waiting.clear()
                return
            with self._changed:
                self._size -= len(batch)

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._left_out or self._ended)
            if not self._waiting:
                self._confess()
            found: list[bytes] = []
            size = 0
            while self._waiting and size < _BATCH:
                found.append(self._waiting.popleft())
                size += len(found[-1])
            return b"".join(found) or None

    def _write(self, raw: bytes) -> None:
        view = memoryview(raw)
        while view:
            with contextlib.suppress(BlockingIOError):  # a terminal shared with somebody who does not block
                view = view[os.write(self._descriptor, view) :]
                continue
            select.select((), (self._descriptor,), (), 1.0)


def _prefix(name: str, colour: str | None) -> str:
    return click.style(f"{name} |", fg=colour) + " " if colour else f"{name} | "
