"""Who belongs to a process, by /proc: the members of its session, and what it has started. Empty without /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_POLL = 0.02  # seconds between looks at processes that are about to end


@dataclass(frozen=True, slots=True)
class Relative:
    """One process for good: a pid alone may be another's by now. start: clock ticks since boot."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class _Entry:
    who: Relative
    parent: int
    session: int


def kill_session(session: int) -> bool:
    """SIGKILL to every process of a session except its leader; False if there was none left.

    Only while the leader is there, if only as a zombie: its number names the session for nobody else then.
    """
    found = False
    for entry in _living():
        if entry.session == session and entry.who.pid != session:
            found = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(entry.who.pid, signal.SIGKILL)
    return found


def descendants(pids: Collection[int]) -> set[Relative]:
    """Everything below these processes."""
    table = list(_living())
    found: set[Relative] = set()
    parents = set(pids)
    while parents:
        level = {entry.who for entry in table if entry.parent in parents} - found
        found |= level
        parents = {one.pid for one in level}
    return found


def left_of(relatives: Collection[Relative], timeout: float) -> list[Relative]:
    """Those that are still alive after up to `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        left = [one for one in relatives if (entry := _entry(one.pid)) is not None and entry.who == one]
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(_POLL)


def _living() -> Iterator[_Entry]:
    with contextlib.suppress(OSError):
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and (entry := _entry(int(folder.name))) is not None:
                yield entry


def _entry(pid: int) -> _Entry | None:
    """None for who is gone, or a zombie."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # the name may hold spaces and brackets: the fields start after its last bracket
    state, parent, _, session, *more = raw[raw.rindex(b")") + 2 :].split()
    return None if state in b"ZX" else _Entry(Relative(pid, int(more[15])), int(parent), int(session))
