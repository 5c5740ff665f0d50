"""Just enough of the Redis protocol (RESP2) to ask a server who it is. Only the store imports a real client."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

Reply = str | int | None


@dataclass(frozen=True, slots=True)
class UnixAddress:
    path: Path

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.path))}"


@dataclass(frozen=True, slots=True)
class LoopbackAddress:
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{quote(self.password, safe='')}@127.0.0.1:{self.port}/0"


Address = UnixAddress | LoopbackAddress


class ErrorReply(Exception):
    """The server answered with an error; its first word (`LOADING`, `NOAUTH`, ...) is `word`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.word = text.split(" ", 1)[0]


def ask(address: Address, *command: str, timeout: float) -> Reply:
    """Send one command on a connection of its own and return the reply.

    timeout: seconds for each step on the socket. Raises OSError (nobody listens, no answer in time,
    connection closed) and ErrorReply.
    """
    with _connect(address, timeout) as connection, connection.makefile("rb") as stream:
        if isinstance(address, LoopbackAddress):
            connection.sendall(_encode("AUTH", address.password))
            _read(stream)
        connection.sendall(_encode(*command))
        return _read(stream)


def facts(info: str) -> Mapping[str, str]:
    """The `name:value` lines of an INFO reply."""
    pairs = (line.partition(":") for line in info.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def _connect(address: Address, timeout: float) -> socket.socket:
    match address:
        case UnixAddress(path):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            target: str | tuple[str, int] = str(path)
        case LoopbackAddress(port, _):
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            target = ("127.0.0.1", port)
    try:
        connection.settimeout(timeout)
        connection.connect(target)
    except BaseException:
        connection.close()
        raise
    return connection


def _encode(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        raw = word.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(raw), raw))
    return b"".join(parts)


def _read(stream: BinaryIO) -> Reply:
    line = _line(stream)
    kind, rest = line[:1], line[1:]
    if kind == "+":
        return rest
    if kind == "-":
        raise ErrorReply(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        size = int(rest)
        if size < 0:
            return None
        body = stream.read(size + 2)
        if len(body) != size + 2:
            raise ConnectionError("the connection was closed inside a reply")
        return body[:-2].decode(errors="replace")
    raise ConnectionError(f"not a reply of a Redis server: {line[:40]!r}")


def _line(stream: BinaryIO) -> str:
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the connection was closed before the reply")
    return line[:-2].decode(errors="replace")
