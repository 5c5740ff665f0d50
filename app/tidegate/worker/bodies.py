"""How to end a body that may not run any longer: in a child by SIGKILL, inside the worker by ending the worker."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from tidegate.domain.job import ClaimedJob, LeaseRef

logger = logging.getLogger(__name__)

#: exit status of a worker that ended itself because it may no longer run what it runs (EX_SOFTWARE)
EXIT_FENCED = 70

#: how many seconds a body is looked for that nobody has accepted
_LOOKS = 60


class Bodies(Protocol):
    """The bodies that run in one worker."""

    #: True if one body can be killed and the others live
    separate: bool

    def kill(self, jobs: Sequence[ClaimedJob], why: str) -> None:
        """End the bodies of these attempts now. Those that have not begun are stopped by the gate in front of them."""

    def look_again(self) -> None:
        """Once a second: end those that had begun before anybody could know where."""


class ChildBodies:
    """Bodies in the children of the prefork pool, one in each."""

    separate = True

    def __init__(self, pool: Any, pid_of: Callable[[LeaseRef], int | None]) -> None:
        self._pool = pool
        self._pid_of = pid_of
        self._unknown: list[tuple[int, ClaimedJob, str]] = []

    def kill(self, jobs: Sequence[ClaimedJob], why: str) -> None:
        for job in jobs:
            if not self._kill(job, why):
                # The page no longer holds it, so no child will start it. But one may have, and its word for that
                # still be on the way to a busy main loop.
                self._unknown.append((_LOOKS, job, why))

    def look_again(self) -> None:
        waiting, self._unknown = self._unknown, []
        for looks, job, why in waiting:
            if not self._kill(job, why) and looks > 1:
                self._unknown.append((looks - 1, job, why))

    def _kill(self, job: ClaimedJob, why: str) -> bool:
        """False if no child is known to have it."""
        pid = self._pid_of(job.ref)
        if pid is None:
            return False
        logger.warning("killing child %d, attempt %s of %s: %s", pid, job.ref, job.task, why)
        self._kill_child(pid)
        return True

    def _kill_child(self, pid: int) -> None:
        """SIGKILL to the child and its subprocesses, and a note to billiard that this was no accident.

        Not `Request.terminate`: that writes to the result backend first, which may hang (CELERY.md §5).
        """
        try:
            if os.getpgid(pid) == pid:  # its guard made it a leader; without one it shares our group
                os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # ended meanwhile; billiard collects it
        self._pool.terminate_job(pid, signal.SIGKILL)


class OwnBodies:
    """Bodies in threads of the worker itself (threads, solo): Python cannot kill a thread, so the worker ends."""

    separate = False

    def kill(self, jobs: Sequence[ClaimedJob], why: str) -> None:
        if jobs:
            leave(f"{len(jobs)} running attempts ({', '.join(str(job.ref) for job in jobs)}): {why}")

    def look_again(self) -> None:
        """Nothing is left to end."""


def leave(why: str) -> NoReturn:
    """End this process at once, without exit handlers: its bodies must not run one moment longer."""
    logger.critical("this pool cannot kill a body, so the worker ends (status %d): %s", EXIT_FENCED, why)
    for handler in logging.getLogger().handlers:
        handler.flush()
    os._exit(EXIT_FENCED)
