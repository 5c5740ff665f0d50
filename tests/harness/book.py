"""The ledger as the test sees it: one stream on the ledger's own server, a reader, and a witness of deaths."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from . import ledger
from .ledger import Connection, Entry, compose, decode
from .procfs import ProcessId
from .server import Server
from .watch import DeathWatch


class Ledger:
    """One test's ledger. Give `env()` to every process that shall write to it (the fixture does)."""

    def __init__(self, server: Server) -> None:
        self._client = server.client()
        self.stream = f"ledger-{uuid.uuid4().hex[:12]}"
        self.url = f"{server.url}?stream={self.stream}"
        self._lock = threading.Lock()
        self._writer = Connection(self.url)
        self._watch = DeathWatch(self.url, self.record_process).start()

    def env(self) -> dict[str, str]:
        return {ledger.VARIABLE: self.url}

    def entries(self) -> list[Entry]:
        """Everything so far, in the order in which the ledger's server took it."""
        lines: Any = self._client.xrange(self.stream)
        return [decode(fields[b"e"]) for _, fields in lines]

    def count(self, kind: str) -> int:
        """How many entries of this kind there are: `wait_until(lambda: book.count("end") == 10, ...)`."""
        return sum(entry.kind == kind for entry in self.entries())

    def record_process(self, what: str, process: ProcessId, *, after: float, before: float) -> None:
        """A `Recorder`: deaths seen by the witness, kills and freezes done by the test."""
        info = {"pid": process.pid, "start": process.start, "after": after, "before": before}
        text = compose(what, info=info)
        with self._lock:
            self._writer.append(text)

    def record_server_kill(self, lost_after: float, killed_at: float) -> None:
        """The broker was killed at `killed_at` and came back without what it took after `lost_after`
        (CLOCK_BOOTTIME seconds; equal if nothing was lost).
        """
        text = compose("server_kill", info={"lost_after": lost_after, "killed_at": killed_at})
        with self._lock:
            self._writer.append(text)

    def close(self) -> None:
        self._watch.close()
        self._writer.close()
        self._client.delete(self.stream)
        self._client.close()
        ledger.close()
