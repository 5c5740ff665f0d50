"""One shared memory page per worker: when the store last confirmed its leases, and who runs on the strength of it.

The main process writes it. Its children and its watchdog read it, and they alone decide whether bodies may go
on, because a frozen main process freezes its own threads while its children work on. Nothing here locks, and
only the standard library is imported: a child maps the page across a fork, the watchdog loads this file by path.

Every word is eight bytes, aligned, written and read by one machine instruction (memoryview of format "Q").
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time

if sys.platform != "linux":  # the watchdog imports this file: what it does not need costs it memory
    import tempfile

MAGIC = 0x7469646567617465  # "tidegate"

# words of the head
_MAGIC, _MAIN, _MODE, _LIMIT, _SENT, _OPEN, _HIGH, _KILLS, _KILLED_AT, _CHILDREN, _LEASES = range(11)
_HEAD = 16
_CHILD = 4  # pid, start, fenced at, reserved

#: what the watchdog kills: the children's process groups, or the main process (pools that cannot kill a body)
MODE_CHILDREN, MODE_MAIN = 1, 2

#: the share of a lease after which silence ends bodies: 12 s of 15 s, so that the lease never ends first
FENCE_SHARE = 0.8

#: seconds between two looks of the guard and of the watchdog
LOOK_EVERY = 0.1

# where BOOTTIME is missing (macOS), MONOTONIC counts sleep
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime_ns() -> int:
    """Nanoseconds of the clock that all processes of one machine share, that nobody can set and that counts sleep."""
    return time.clock_gettime_ns(_CLOCK)


def fence_limit_ns(lease_ms: int) -> int:
    """Silence, in nanoseconds, after which no body of this worker may run: 0.8 of the lease."""
    return int(lease_ms * 1_000_000 * FENCE_SHARE)


def started_at(pid: int) -> int:
    """Start of a process in clock ticks since boot: with the pid it names one process for good. 0: gone or unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is not imported: the watchdog stays small
            raw = file.read()
    except OSError:
        return 0
    # the name of the program may hold spaces and brackets; the other fields follow the last bracket
    return int(raw[raw.rindex(b")") + 2 :].split()[19])


class Stamp:
    """The page, mapped into this process. `create()` in the main process, `attach(fd)` in the watchdog."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, os.fstat(fd).st_size)
        self._words = memoryview(self._map).cast("Q")
        self._slots: dict[int, int] = {}  # tag -> word; main process only
        self._free: list[int] = []

    @classmethod
    def create(cls, limit_ns: int, mode: int, children: int = 1024, leases: int = 4096) -> Stamp:
        """A fresh page of this process. children, leases: how many there is room for."""
        fd = _memory(8 * (_HEAD + children * _CHILD + leases))
        stamp = cls(fd)
        words = stamp._words
        words[_CHILDREN], words[_LEASES] = children, leases
        words[_MAIN], words[_MODE], words[_LIMIT] = os.getpid(), mode, limit_ns
        words[_SENT] = boottime_ns()
        words[_MAGIC] = MAGIC
        return stamp

    @classmethod
    def attach(cls, fd: int) -> Stamp:
        """The page behind an inherited descriptor; ValueError if it is none of ours."""
        stamp = cls(fd)
        if stamp._words[_MAGIC] != MAGIC:
            raise ValueError(f"descriptor {fd} is not the page of a worker")
        return stamp

    def close(self) -> None:
        """Unmap it here; other processes keep theirs."""
        self._words.release()
        self._map.close()
        os.close(self.fd)

    # --- what everybody reads

    @property
    def main(self) -> int:
        """Pid of the main process."""
        return self._words[_MAIN]

    @property
    def mode(self) -> int:
        return self._words[_MODE]

    @property
    def limit_ns(self) -> int:
        return self._words[_LIMIT]

    @property
    def sent_ns(self) -> int:
        """The store has confirmed every open lease in a request sent at or after this instant."""
        return self._words[_SENT]

    @property
    def open(self) -> int:
        """Bodies that may be running now."""
        return self._words[_OPEN]

    def silent(self, now_ns: int) -> bool:
        """True if a body runs on a lease that the store has not confirmed for longer than the limit."""
        return self._words[_OPEN] > 0 and now_ns - self._words[_SENT] > self._words[_LIMIT]

    def holds(self, tag: int) -> bool:
        """True if the main process has handed out this lease and still owns it."""
        first = 8 * self._first_lease
        found = self._map.find(struct.pack("=Q", tag), first, first + 8 * self._words[_HIGH])
        return found >= 0 and found % 8 == 0

    # --- what the main process writes

    def confirm(self, sent_ns: int) -> None:
        """The store confirmed every open lease; the request was sent at `sent_ns`."""
        self._words[_SENT] = sent_ns

    def admit(self, tag: int, since_ns: int) -> bool:
        """A body may start on a lease confirmed at `since_ns`. False if the page has no room for it.

        The order matters: first the age, then the right to start, so that no reader sees a lease younger than it is.
        """
        slot = self._free.pop() if self._free else self._first_lease + self._words[_HIGH]
        if slot >= self._first_lease + self._words[_LEASES]:
            return False
        if self._words[_OPEN] == 0 or since_ns < self._words[_SENT]:
            self._words[_SENT] = since_ns
        self._words[slot] = tag
        self._slots[tag] = slot
        self._words[_HIGH] = max(self._words[_HIGH], slot - self._first_lease + 1)
        self._words[_OPEN] = len(self._slots)
        return True

    def expel(self, tag: int) -> None:
        """The body is over, or must not start any more. A tag that is not there is no error."""
        slot = self._slots.pop(tag, None)
        if slot is not None:
            self._words[slot] = 0
            self._free.append(slot)
            self._words[_OPEN] = len(self._slots)

    def fenced(self) -> tuple[int, int]:
        """How often the watchdog killed, and how many live children's slots say that they ended themselves."""
        ended = sum(1 for slot in range(self._words[_CHILDREN]) if self._words[_HEAD + slot * _CHILD + 2])
        return self._words[_KILLS], ended

    # --- what a child writes, each in the slot of its own index

    def enter(self, index: int, pid: int, start: int) -> bool:
        """Tell the watchdog about this child. False if there is no slot for that index."""
        if not 0 <= index < self._words[_CHILDREN]:
            return False
        at = _HEAD + index * _CHILD
        self._words[at] = 0  # never a new pid with the old start
        self._words[at + 1], self._words[at + 2] = start, 0
        self._words[at] = pid
        return True

    def note_fenced(self, index: int, now_ns: int) -> None:
        """This child is about to end itself; for the main process's log."""
        if 0 <= index < self._words[_CHILDREN]:
            self._words[_HEAD + index * _CHILD + 2] = now_ns

    # --- what the watchdog does

    def children(self) -> list[tuple[int, int]]:
        """(pid, start) of the children that entered, dead ones included."""
        rows = range(_HEAD, _HEAD + self._words[_CHILDREN] * _CHILD, _CHILD)
        return [(self._words[at], self._words[at + 1]) for at in rows if self._words[at]]

    def note_kill(self, now_ns: int) -> None:
        self._words[_KILLED_AT] = now_ns
        self._words[_KILLS] += 1

    @property
    def _first_lease(self) -> int:
        return _HEAD + self._words[_CHILDREN] * _CHILD


def _memory(size: int) -> int:
    """A descriptor of `size` zero bytes that no file system holds."""
    if sys.platform == "linux":
        fd = os.memfd_create("tidegate-stamp", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile(prefix="tidegate-") as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
