"""What can go wrong with the bundled server."""

from __future__ import annotations

from tidegate.domain.errors import TidegateError


class EmbeddedError(TidegateError):
    """The bundled server cannot be used.

    what: the fact; file: the path it is about; next_step: what to do; log_tail: the last lines of the
    server's log, empty if it never ran.
    """

    code = "embedded_failed"
    exit_code = 3
    fields = ("what", "file", "next_step", "log_tail")

    def __init__(self, what: str, file: str, next_step: str, log_tail: str = "") -> None:
        self.what, self.file, self.next_step, self.log_tail = what, file, next_step, log_tail
        message = f"embedded server: {what} ({file}); {next_step}"
        if log_tail:
            message += f"\nlast lines of its log:\n{log_tail}"
        super().__init__(message)
