"""Arm named places of the application (tidegate.telemetry.faultpoint) and know when a process got there."""

from __future__ import annotations

from pathlib import Path

from tidegate.telemetry.faultpoint import DIRECTORY_VARIABLE, VARIABLE, parse

from . import procfs
from .processes import Recorder, freeze, thaw
from .procfs import ProcessId
from .wait import wait_until


class Faultpoints:
    """Orders for the processes that get `env()`: `Faultpoints(tmp_path, "claim.answered=kill:3")`.

    All these processes count together: the third arrival anywhere is killed, once.
    """

    def __init__(self, directory: Path, *orders: str) -> None:
        self._text = ",".join(orders)
        parse(self._text)  # a misspelt order fails here, in the test
        self._directory = directory / "faultpoints"
        self._directory.mkdir()

    def env(self) -> dict[str, str]:
        return {VARIABLE: self._text, DIRECTORY_VARIABLE: str(self._directory)}

    def arrivals(self, name: str) -> list[int]:
        """The pids that reached the point, in order, each time they did."""
        file = self._directory / name
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_reached(self, name: str, times: int = 1, timeout: float = 30.0) -> int:
        """Until the point was reached that often; returns the pid of that arrival (dead by now, if it was killed)."""
        wait_until(
            lambda: len(self.arrivals(name)) >= times,
            lambda: f"{times} arrivals at {name}, there were {len(self.arrivals(name))}",
            timeout,
        )
        return self.arrivals(name)[times - 1]

    def wait_stopped(
        self, name: str, times: int = 1, timeout: float = 30.0, record: Recorder | None = None
    ) -> ProcessId:
        """Until a process stands still at a point armed with `stop`. `resume` lets it go on."""
        pid = self.wait_reached(name, times, timeout)
        process = procfs.identify(pid)
        assert process is not None, f"pid {pid} died at {name}"
        wait_until(lambda: procfs.is_stopped(process), f"pid {pid} to stand still at {name}", timeout)
        if record is not None:
            freeze(process, record)  # it is frozen already; this tells the ledger
        return process

    @staticmethod
    def resume(process: ProcessId, record: Recorder | None = None) -> None:
        thaw(process, record)
