"""Sockets by URL: `unix:///path` and `redis://host:port`, as the rest of the harness names servers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

Listen = Literal["unix", "tcp"]


def connect(url: str) -> socket.socket:
    """A blocking, connected socket. Raises OSError."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target: str | tuple[str, int] = unquote(parts.path)
    else:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        target = (parts.hostname or "127.0.0.1", parts.port or 6379)
    try:
        connection.connect(target)
    except OSError:
        connection.close()
        raise
    return connection


def free_port() -> int:
    """A TCP port on loopback that was free an instant ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Listener:
    """A listening socket that can be closed and opened again at the same address."""

    def __init__(self, listen: Listen, path: Path) -> None:
        self.listen: Listen = listen
        self.path = path
        self._port = 0
        self.socket: socket.socket | None = None
        self.open()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0" if self.listen == "tcp" else f"unix://{self.path}"

    def open(self) -> None:
        if self.listen == "tcp":
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._port))
            self._port = listener.getsockname()[1]
        else:
            self.path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(self.path))
        listener.listen(256)
        self.socket = listener

    def accept(self) -> socket.socket:
        assert self.socket is not None
        return self.socket.accept()[0]

    def close(self) -> None:
        """Nobody listens any more; the file of a unix socket stays, so that connecting is refused (ECONNREFUSED)."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
