"""What /proc says about processes.

A process is named by pid *and* start time: a number alone may be another's by now.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for good: `start` is its start in clock ticks since boot (field 22 of /proc/PID/stat)."""

    pid: int
    start: int

    @property
    def started_at(self) -> float:
        """Seconds since boot (CLOCK_BOOTTIME), to a clock tick."""
        return self.start / _TICKS


@dataclass(frozen=True, slots=True)
class Stat:
    """The fields of /proc/PID/stat that tests need. `state`: R, S, D, Z (zombie), T (stopped), ..."""

    id: ProcessId
    state: str
    ppid: int
    session: int


def stat(pid: int) -> Stat | None:
    """None if there is no such process."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command may hold spaces and brackets; the fields start after the last bracket.
    fields = raw[raw.rindex(")") + 2 :].split()
    return Stat(ProcessId(pid, int(fields[19])), state=fields[0], ppid=int(fields[1]), session=int(fields[3]))


def identify(pid: int) -> ProcessId | None:
    found = stat(pid)
    return found.id if found else None


def is_alive(process: ProcessId) -> bool:
    """A zombie is dead: it runs nothing any more."""
    found = stat(process.pid)
    return found is not None and found.id == process and found.state not in "ZX"


def is_stopped(process: ProcessId) -> bool:
    """True once SIGSTOP has really taken effect on every thread (state T)."""
    found = stat(process.pid)
    if found is None or found.id != process:
        return False
    try:
        threads = Path(f"/proc/{process.pid}/task").iterdir()
        states = [(thread / "stat").read_text() for thread in threads]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return all(raw[raw.rindex(")") + 2] in "Tt" for raw in states)


def signal_process(process: ProcessId, number: int) -> bool:
    """Send a signal to exactly this process; False if it is gone (the pidfd: its pid may be re-used)."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if identify(process.pid) != process:
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def everything() -> list[Stat]:
    found = (stat(pid) for pid in _pids())
    return [entry for entry in found if entry is not None]


def children(pid: int) -> list[ProcessId]:
    """Direct children that are alive, oldest first."""
    mine = [entry.id for entry in everything() if entry.ppid == pid and entry.state not in "ZX"]
    return sorted(mine, key=lambda process: (process.start, process.pid))


def descendants(pids: Iterable[int]) -> list[ProcessId]:
    """Every process below these, parents before children."""
    table = everything()
    found: list[ProcessId] = []
    parents = set(pids)
    while parents:
        level = [entry for entry in table if entry.ppid in parents and entry.state not in "ZX"]
        found.extend(entry.id for entry in level)
        parents = {entry.id.pid for entry in level}
    return found


def marked(variable: str, values: Collection[str]) -> list[ProcessId]:
    """Processes that were started with `variable` set to one of these in their environment: finds orphans too."""
    needles = {f"{variable}={value}".encode() for value in values}
    found = []
    for pid in _pids():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # gone meanwhile, or another user's: not ours
        if not needles.isdisjoint(environ.split(b"\0")):
            entry = stat(pid)
            if entry and entry.state not in "ZX":
                found.append(entry.id)
    return found


def working_in(directory: Path) -> list[ProcessId]:
    """Processes whose working directory is `directory` or below it."""
    found = []
    for pid in _pids():
        try:
            cwd = Path(f"/proc/{pid}/cwd").readlink()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        entry = stat(pid)
        if entry and entry.state not in "ZX" and cwd.is_relative_to(directory):
            found.append(entry.id)
    return found


def boot_time() -> float:
    """Seconds since boot: the one clock that all processes of a machine share and nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
