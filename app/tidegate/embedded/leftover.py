"""What can hold a data directory without serving it, and how it is cleared away."""

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


class Leftover:
    """Looks again and again, under the start lock, while the server lock is held and nobody answers.

    Two things are cleared; everything else is left alone, and where there is no /proc nothing is done:
    the AOF-rewriting child of a server that was killed (it holds the inherited lock, and writes only a
    temporary file), and a server whose socket file somebody deleted (nobody can ever reach it again).
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._next_look = 0.0
        self._unreachable_since: float | None = None

    def clear(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK
        pid = server_pid(self._place)
        if pid is None:
            return  # a newborn: its starter removed the old pid file
        alive = holders(self._place.server_lock)
        if pid not in alive:
            kill_servers(self._place)
        elif isinstance(self._place.address(), UnixAddress) and not self._place.socket.exists():
            since = self._unreachable_since = self._unreachable_since or now
            if now - since >= _PATIENCE:
                _send(pid, signal.SIGTERM)
        else:
            self._unreachable_since = None


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
