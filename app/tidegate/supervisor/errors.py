"""What a supervisor refuses."""

from __future__ import annotations

from tidegate.domain.errors import TidegateError


class AlreadyUp(TidegateError):
    """Another supervisor looks after this folder. pid: its process, 0 if it has not said so yet."""

    code = "already_up"
    fields = ("pid", "file")

    def __init__(self, pid: int, file: str) -> None:
        self.pid, self.file = pid, file
        who = f"pid {pid}" if pid else "its pid is not written yet"
        super().__init__(
            f"`tidegate up` runs already in this folder ({who}; it holds {file}); "
            f"end that one first, or set another broker.data_dir for a second fleet"
        )
