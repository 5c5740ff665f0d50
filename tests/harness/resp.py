"""Where one message of the Redis protocol (RESP2 and RESP3) ends and the next begins.

Enough for the proxy, which must act between two commands, and for the ledger, which must not depend on a client that
repeats commands by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LINES = b"+-:_#,("
_BLOBS = b"$!="
_ARRAYS = b"*~>"
_MAPS = b"%|"


class NotYet(Exception):
    """The buffer ends inside a message."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One whole message: its bytes, its type byte and its value (bytes, int, None, or a list; maps: list of pairs)."""

    raw: bytes
    kind: str
    value: Any

    @property
    def is_push(self) -> bool:
        """Out of band (RESP3): belongs to no command."""
        return self.kind == ">"

    @property
    def command(self) -> str:
        """Of a request: the command's name in upper case."""
        first = self.value[0] if isinstance(self.value, list) and self.value else self.value
        return first.decode(errors="replace").upper() if isinstance(first, bytes) else ""


class Frames:
    """Feed it bytes as they come; it hands out whole messages."""

    def __init__(self) -> None:
        self._buffer = b""

    @property
    def pending(self) -> bytes:
        """The part of a message that has come so far."""
        return self._buffer

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        frames = []
        while self._buffer:
            try:
                kind, value, end = _message(self._buffer, 0)
            except NotYet:
                break
            raw, self._buffer = self._buffer[:end], self._buffer[end:]
            frames.append(Frame(raw, kind, value))
        return frames


def encode(*words: str | bytes) -> bytes:
    """A request."""
    blobs = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(blobs) + b"".join(b"$%d\r\n%s\r\n" % (len(blob), blob) for blob in blobs)


def _message(buffer: bytes, start: int) -> tuple[str, Any, int]:
    end = buffer.find(b"\r\n", start)
    if end < 0:
        raise NotYet
    kind, line, after = buffer[start : start + 1], buffer[start + 1 : end], end + 2
    if kind in _LINES:
        return kind.decode(), _scalar(kind, line), after
    if kind in _BLOBS:
        size = int(line)
        if size < 0:
            return kind.decode(), None, after
        if len(buffer) < after + size + 2:
            raise NotYet
        return kind.decode(), buffer[after : after + size], after + size + 2
    if kind in _ARRAYS or kind in _MAPS:
        return _aggregate(buffer, kind, int(line), after)
    # an inline command: what a person types
    words = buffer[start:end].split()
    return "inline", words, after


def _aggregate(buffer: bytes, kind: bytes, size: int, after: int) -> tuple[str, Any, int]:
    if size < 0:
        return kind.decode(), None, after
    items = []
    for _ in range(size * 2 if kind in _MAPS else size):
        _, item, after = _message(buffer, after)
        items.append(item)
    if kind == b"|":  # attributes: part of the message that follows
        return _message(buffer, after)
    if kind == b"%":
        return "%", list(zip(items[::2], items[1::2], strict=True)), after
    return kind.decode(), items, after


def _scalar(kind: bytes, line: bytes) -> Any:
    if kind == b":":
        return int(line)
    if kind == b"_":
        return None
    if kind == b"#":
        return line == b"t"
    return line
