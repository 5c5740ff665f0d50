"""`tidegate --ends-with PID …`: a process that stops politely when the process that started it is gone.

Standard library only: it runs before anything else of a command is imported.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_parent(pid: int) -> None:
    """SIGTERM to this process as soon as `pid`, its parent, is gone, even by SIGKILL. It lasts through exec.

    The kernel means the *thread* that started us: a supervisor starts all its processes from the one thread that
    looks after them. Linux only; elsewhere a parent that is gone is seen here and not later. Raises OSError if the
    system refuses, SystemExit if the parent is gone already.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) was refused")
    if os.getppid() != pid:  # it went between our start and the line above
        raise SystemExit(0)
