"""No leftovers, even when the test process itself is killed.

One small process per test process reads lines on stdin and does nothing until the pipe closes, which the
kernel does however the test process ends. Then it kills what was registered and removes the registered
directories:

    run VALUE        processes with HARNESS_RUN=VALUE in their environment
    process PID TICK one process by pid and start time (servers overwrite their environment block)
    directory PATH   a directory made by this test process, and every process that works in it (a detached server)
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from .procfs import ProcessId, marked, signal_process, working_in

RUN_VARIABLE = "HARNESS_RUN"

#: names this test process: every process it spawns carries it in its environment
RUN = uuid.uuid4().hex

_ROOT = Path(__file__).resolve().parents[2]
_guard: subprocess.Popen[bytes] | None = None


def register_process(pid: int, start: int) -> None:
    _tell(f"process {pid} {start}")


def register_directory(path: Path) -> None:
    _tell(f"directory {path}")


def register_run() -> None:
    _tell(f"run {RUN}")


def _tell(line: str) -> None:
    pipe = _start().stdin
    assert pipe is not None
    pipe.write(line.encode() + b"\n")
    pipe.flush()


def _start() -> subprocess.Popen[bytes]:
    global _guard
    if _guard is None:
        environ = {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
        _guard = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.guard"],
            stdin=subprocess.PIPE,
            cwd=_ROOT,
            env=environ,
            start_new_session=True,  # Ctrl-C in the terminal is for the tests, not for their guard
        )
    return _guard


def close() -> None:
    """Clean up now and wait for it (end of the test session)."""
    global _guard
    if _guard is not None:
        assert _guard.stdin is not None
        _guard.stdin.close()
        _guard.wait(timeout=30)
        _guard = None


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    orders = [line.rstrip("\n").split(" ", 1) for line in sys.stdin]
    for what, argument in orders:
        if what == "process":
            pid, start = argument.split()
            signal_process(ProcessId(int(pid), int(start)), signal.SIGKILL)
        elif what == "run":
            # A process that is just forking may escape one pass; the last pass finds nothing.
            while left := marked(RUN_VARIABLE, [argument]):
                for process in left:
                    signal_process(process, signal.SIGKILL)
    for what, argument in orders:
        if what == "directory":
            for process in working_in(Path(argument)):
                signal_process(process, signal.SIGKILL)
            shutil.rmtree(argument, ignore_errors=True)


if __name__ == "__main__":
    main()
