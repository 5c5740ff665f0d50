"""The guard in every child of the prefork pool: a body never outlives its worker's right to run it.

A thread of the child looks at the page (stamp.py) ten times a second and ends the child, with all its
subprocesses, when the store has confirmed no lease for 0.8 of one, or when the main process is gone. It takes
no lock and does no I/O, so a fork inside a body finds nothing of it held. A body whose interpreter is stuck in
C starves it; the watchdog process ends those.

The gate in front of each body asks the same page whether this very lease is still ours: a message may have
waited in a pipe while everything stood still.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import NoReturn

from tidegate.worker.stamp import LOOK_EVERY, Stamp, boottime_ns, started_at
from tidegate.worker.tenure import lease_tag


class Guard:
    """The guard of this child. `start()` once, after the fork and before the first body."""

    def __init__(self, stamp: Stamp, index: int) -> None:
        self._stamp = stamp
        self._index = index

    def start(self) -> None:
        """Make this child the leader of its own process group, tell the watchdog, begin to look."""
        os.setpgid(0, 0)
        pid = os.getpid()
        self._stamp.enter(self._index, pid, started_at(pid))
        threading.Thread(target=self._look, name="tidegate-guard", daemon=True).start()

    def admit(self, ref: str) -> None:
        """Returns if the body of lease `ref` ("job:fence") may start now, and does not return otherwise."""
        if self._stamp.silent(boottime_ns()) or not self._stamp.holds(lease_tag(ref)):
            self._end()

    def _look(self) -> None:
        stamp = self._stamp
        while os.getppid() == stamp.main and not stamp.silent(boottime_ns()):
            time.sleep(LOOK_EVERY)
        self._end()

    def _end(self) -> NoReturn:
        self._stamp.note_fenced(self._index, boottime_ns())
        os.killpg(0, signal.SIGKILL)
        os._exit(70)  # not reached: killpg(0) includes this process


_guard: Guard | None = None


def start(stamp: Stamp, index: int) -> None:
    """Start the guard of this child (receiver of `worker_process_init` in bootstep.py)."""
    global _guard
    _guard = Guard(stamp, index)
    _guard.start()


def admit(ref: str) -> None:
    """The gate in front of a body in a child; in a process without a guard (threads, solo, tests) always open.

    There the gate is `LeaseTable.hand`, in the same process.
    """
    if _guard is not None:
        _guard.admit(ref)
