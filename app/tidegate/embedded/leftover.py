"""Servers that hold a data directory without serving it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from tidegate.embedded.binary import server_binary
from tidegate.embedded.lock import holders
from tidegate.embedded.place import Place
from tidegate.embedded.resp import UnixAddress

_LOOK = 0.2  # seconds between looks; each one reads all of /proc
_PATIENCE = 1.0  # seconds a new server may take between its pid file and its socket


def server_pid(place: Place) -> int | None:
    """The pid that the server wrote; None if it has not yet, or never ran. It may be dead by now."""
    try:
        return int(place.pid_file.read_text())
    except (FileNotFoundError, ValueError):
        return None


class Unreachable:
    """A server whose socket file somebody deleted: nobody can ever reach it again, so it is asked to end.

    Looked for again and again, under the start lock, while the server lock is held and nobody answers. Everything
    else that holds the lock without answering is left alone: a frozen server, or one that is just starting, or the
    AOF-rewriting child of a server that was killed (it inherited the lock, and ends by itself when it notices).
    Where there is no /proc nothing is done.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._next_look = 0.0
        self._since: float | None = None

    def end(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK
        pid = server_pid(self._place)
        if self._place.socket.exists() or pid is None or pid not in holders(self._place.server_lock):
            self._since = None
            return
        self._since = self._since or now
        if isinstance(self._place.address(), UnixAddress) and now - self._since >= _PATIENCE:
            _send(pid, signal.SIGTERM)


def kill_servers(place: Place) -> None:
    """SIGKILL to every process that runs the bundled server on this directory."""
    for pid in holders(place.server_lock):
        if _runs_the_server(pid):
            _send(pid, signal.SIGKILL)


def _runs_the_server(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/exe").samefile(server_binary())
    return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
