"""A stream of bytes from a process becomes lines of text that can do a terminal no harm."""

from __future__ import annotations

#: bytes of one line; a longer one is shown in pieces, so that no stream without line ends can fill the memory
LIMIT = 8192

# Every control character but the tab, shown as Python writes it.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))}


class Lines:
    """What has been read of one process. Feed it as the bytes come."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are whole now."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        found = [text for raw in whole for text in _texts(raw)]
        while len(self._rest) > LIMIT:
            end = _boundary(self._rest)
            found.append(_text(self._rest[:end]))
            self._rest = self._rest[end:]
        return found

    def end(self) -> list[str]:
        """The last line, if it has no end: nothing more will come."""
        rest, self._rest = self._rest, b""
        return _texts(rest) if rest else []


def _texts(raw: bytes) -> list[str]:
    # A carriage return starts a line again (a progress bar): each state of it is a line here.
    states = [state for state in raw.split(b"\r") if state] or [b""]
    return [_text(piece) for state in states for piece in _pieces(state)]


def _pieces(raw: bytes) -> list[bytes]:
    found = []
    while len(raw) > LIMIT:
        end = _boundary(raw)
        found.append(raw[:end])
        raw = raw[end:]
    return [*found, raw]


def _boundary(raw: bytes) -> int:
    """LIMIT, or up to three bytes before it: no character of UTF-8 is cut."""
    for end in range(LIMIT, LIMIT - 4, -1):
        if raw[end] & 0xC0 != 0x80:
            return end
    return LIMIT


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace").translate(_VISIBLE)
