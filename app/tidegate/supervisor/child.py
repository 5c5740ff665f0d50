"""One process of a part: in a session of its own, with its output on a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Sequence

from tidegate.supervisor.family import kill_session

_CHUNK = 65_536  # bytes of one read: one that floods waits for the others after each
_PIPE = 1 << 20  # bytes that it may say while we stand still (Ctrl-Z); the kernel's default is 64 KiB
_PATIENCE = 5.0  # seconds that the rest of a session may take to die


class Child:
    """Started by the constructor. Raises OSError if the system cannot.

    A session of its own: Ctrl-C in the terminal is for the supervisor alone, and whatever the process leaves behind can
    be found by its session.
    """

    def __init__(self, command: Sequence[str]) -> None:
        reader, writer = os.pipe()
        try:
            with contextlib.suppress(AttributeError, OSError):  # not Linux, or more than this user may have
                fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, _PIPE)
            os.set_blocking(reader, False)
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        self.output = reader
        self.started = time.monotonic()
        self._ended: float | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self) -> bytes | None:
        """What it has said, at most a chunk; empty if nothing now, None after the last."""
        try:
            return os.read(self.output, _CHUNK) or None
        except BlockingIOError:
            return b""

    def ask(self) -> None:
        """To stop politely."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to it and to its whole session."""
        if self._process.returncode is None:
            self._send(signal.SIGKILL)
            kill_session(self.pid)

    def _send(self, number: int) -> None:
        # Not Popen.send_signal, which collects a zombie on its way. Until `ended` does, the number is nobody else's.
        if self._process.returncode is None:
            os.kill(self.pid, number)

    def ended(self) -> int | None:
        """Its exit status (negative: a signal) as soon as it is dead and nothing of its session lives; None before.

        Looked at before it is collected: as long as it is a zombie its number cannot become another's.
        """
        try:
            dead = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # somebody else collected it
            return self._process.wait()
        if dead is None:
            return None
        now = time.monotonic()
        self._ended = self._ended or now
        if kill_session(self.pid) and now - self._ended < _PATIENCE:
            return None
        return self._process.wait()

    def close(self) -> None:
        """Its output is read no more."""
        os.close(self.output)
