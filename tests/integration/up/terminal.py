"""A terminal with one command in its foreground: `python -m tests.integration.up.terminal COMMAND …`.

What the command prints is copied to stdout. SIGUSR1 to this process types Ctrl-C: the terminal itself sends SIGINT to
the whole foreground group, as it does for a user. Ends with the command's exit status.
"""

from __future__ import annotations

import os
import pty
import signal
import sys


def main(command: list[str]) -> int:
    pid, terminal = (
        pty.fork()
    )  # a new session with the terminal as its own: nothing else runs in this process
    if pid == 0:
        os.execvp(command[0], command)
    signal.signal(signal.SIGUSR1, lambda *_: os.write(terminal, b"\x03"))
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # EIO: nobody has the terminal open any more
            break
        if not data:
            break
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
