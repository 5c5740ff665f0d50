"""The watchdog: one small process per worker that ends bodies when the worker can no longer speak for them.

Started by path (kennel.py), with the standard library only, and given nothing but the descriptor of the worker's
page (stamp.py). It does no I/O: it looks at the page ten times a second, waits for the worker's death, and kills.

- The store has confirmed no lease for 0.8 of one while bodies run: it kills the children's process groups, or
  the worker itself where bodies run inside it (threads, solo). A main process that is frozen, or stuck in a C
  call that holds the interpreter lock, cannot do that; SIGKILL ends a stopped process too.
- The worker is gone: it kills what is left of its children and of their subprocesses, and ends.

It runs in a session of its own with the signals blocked that a terminal or a supervisor sends to everybody, so
that it outlives its worker by a moment; and it always ends with its worker.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

if __package__:
    from tidegate.worker.stamp import LOOK_EVERY, MODE_MAIN, Stamp, boottime_ns, started_at
else:  # run by path: importing the package would cost 40 MB
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs 1 MB
    from stamp import (  # type: ignore[import-not-found,no-redef]
        LOOK_EVERY,
        MODE_MAIN,
        Stamp,
        boottime_ns,
        started_at,
    )

    del sys.path[0]


class Watchdog:
    """Looks at one worker until it is gone. The worker must be this process's parent."""

    def __init__(self, stamp: Stamp) -> None:
        self.stamp = stamp
        self._session = _session_of(stamp.main)
        self._main = _process_handle(stamp.main)
        self._poll = select.poll()
        if self._main >= 0:
            self._poll.register(self._main, select.POLLIN)

    def watch(self) -> None:
        """Returns when the worker is gone and nothing of it is left."""
        while not self._gone():
            if self.stamp.silent(boottime_ns()):
                self._fence()
        for pid, start in self.stamp.children():
            _kill_group(pid, start, self._session)

    def _gone(self) -> bool:
        """Sleeps for a look's length, or until the worker's death. A re-used pid cannot be our parent."""
        if self._main >= 0:
            self._poll.poll(LOOK_EVERY * 1000)
        else:
            time.sleep(LOOK_EVERY)
        return os.getppid() != self.stamp.main

    def _fence(self) -> None:
        if self.stamp.mode == MODE_MAIN:
            self.stamp.note_kill(boottime_ns())
            self._kill_main()
            return
        killed = [_kill_group(pid, start, self._session) for pid, start in self.stamp.children()]
        if any(killed):
            self.stamp.note_kill(boottime_ns())

    def _kill_main(self) -> None:
        try:
            if self._main >= 0:
                signal.pidfd_send_signal(self._main, signal.SIGKILL)
            else:
                os.kill(self.stamp.main, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it went by itself


def _kill_group(pid: int, start: int, session: int) -> bool:
    """SIGKILL to a child and everything in its process group; False if nothing of it was there.

    A child that is gone may have left subprocesses in its group. Its pid cannot have been given away while they
    live; they are told from strangers by their session.
    """
    try:
        if started_at(pid) == start:
            os.killpg(pid, signal.SIGKILL)
            return True
        return sum(map(_kill, _members(pid, session))) > 0
    except (ProcessLookupError, PermissionError):
        return False


def _members(group: int, session: int) -> list[int]:
    """Pids of one process group and session (empty where there is no /proc)."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH208, PTH112
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                raw = file.read()
        except OSError:
            continue  # ended meanwhile
        state, _, pgrp, sid = raw[raw.rindex(b")") + 2 :].split()[:4]
        if state not in b"ZX" and int(pgrp) == group and int(sid) == session:
            found.append(int(name))
    return found


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return -1


def _process_handle(pid: int) -> int:
    """A pidfd, or -1 where the system has none (looks at the parent's pid then, ten times a second)."""
    if not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def main(arguments: list[str]) -> int:
    Watchdog(Stamp.attach(int(arguments[1]))).watch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
