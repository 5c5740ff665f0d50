"""Two locks of a data directory, both kept by the kernel, so that no crash can leave one behind.

`start.lock` is held while somebody starts or stops the server. `server.lock` is inherited by the server
process and
lives exactly as long as it does: whoever can take it knows that no server works in this directory. A pid file
cannot
say that: pids are used again, and a starter may be killed before it writes one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegate.embedded.errors import EmbeddedError

_POLL = 0.01  # seconds between looks at a lock: flock has no time-out of its own


def try_lock(path: Path) -> int | None:
    """Take the lock and return its descriptor, to be closed (or inherited); None if somebody holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise EmbeddedError(
            f"the file system has no working file locks: {error.strerror}",
            str(path),
            "set broker.data_dir to a directory on a local disk",
        ) from error
    return descriptor


@contextmanager
def start_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold `path` for the block. Raises EmbeddedError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() >= deadline:
            raise EmbeddedError(
                f"another process has been starting or stopping the server for {timeout:g} s",
                str(path),
                f"see what it waits for (Linux: `fuser {path}` names it), then try again",
            )
        time.sleep(_POLL)
    try:
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether a server (or what is left of one) lives in this directory. Takes nothing away from a starter:
    a shared lock for an instant, and a starter tries again.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holders(path: Path) -> list[int]:
    """The pids that have this lock file open, ourselves left out. Empty where there is no /proc."""
    try:
        wanted = path.stat()
    except FileNotFoundError:
        return []
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) != os.getpid() and _has_open(entry / "fd", wanted):
            found.append(int(entry.name))
    return found


def _has_open(folder: Path, wanted: os.stat_result) -> bool:
    try:
        for descriptor in folder.iterdir():
            if os.path.samestat(descriptor.stat(), wanted):
                return True
    except OSError:
        return False  # the process or its descriptor is gone, or it is another user's and so not our server
    return False
