"""Starts the watchdog of this worker, and starts it again if somebody ends it."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path

from tidegate.worker.stamp import Stamp

logger = logging.getLogger(__name__)

#: what a terminal or a supervisor sends to all processes at once; the watchdog must outlive its worker by a moment
_EVERYBODYS_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_PROGRAM = Path(__file__).with_name("watchdog.py")


class Kennel:
    """Owner of one watchdog process. Not thread-safe: one thread looks after it."""

    def __init__(self, stamp: Stamp) -> None:
        self._stamp = stamp
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0

    @property
    def pid(self) -> int:
        """Pid of the watchdog; 0 if there is none."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start one. OSError if the system cannot: a worker must not run bodies without it."""
        # Blocked from its first instruction on: the mask is inherited, a handler would come too late.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _EVERYBODYS_SIGNALS)
        try:
            self._process = subprocess.Popen(
                # -I -S: neither the environment nor site-packages can make it large or slow
                [sys.executable, "-I", "-S", str(_PROGRAM), str(self._stamp.fd)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._stamp.fd,),
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def look(self) -> None:
        """Call it about once a second."""
        if self._process is not None and self._process.poll() is not None:
            self.restarts += 1
            logger.error("the watchdog ended (status %s); starting it again", self._process.returncode)
            self.start()

    def stop(self) -> None:
        """The worker has no bodies left and stops politely: nothing is to be killed after it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
