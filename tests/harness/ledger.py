"""The independent ledger: what tasks really did, told by the tasks themselves, without any code of Tidegate.

A task calls `begin` and `end`; a producer notes what it was told. Each call is one XADD on a server of its own and
returns when that server has it, so what a process wrote before `kill -9` is there. Where to write comes from the
environment variable LEDGER_URL (`unix:///path?stream=NAME`), which the `ledger` fixture hands to processes.

    attempt = ledger.begin("job-7", tenant="acme")
    ...
    ledger.end(attempt)
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .address import connect
from .procfs import ProcessId, boot_time, stat
from .resp import Frame, Frames, encode

VARIABLE = "LEDGER_URL"
_TIMEOUT = 20.0  # seconds; nobody stops the ledger's server, so a time-out is a broken test
_local = threading.local()


class LedgerError(Exception):
    """The ledger itself failed: no verdict can be trusted."""


# -- for tasks and producers --


def begin(job: str, **info: Any) -> str:
    """An attempt of `job` starts now. Returns the attempt's id for `end`. `info` is JSON (tenant="acme")."""
    attempt = uuid.uuid4().hex
    _write("begin", attempt=attempt, job=job, info=info)
    return attempt


def end(attempt: str, **info: Any) -> None:
    """The attempt has done its work."""
    _write("end", attempt=attempt, info=info)


def note(kind: str, **info: Any) -> None:
    """Anything else worth knowing."""
    _write(kind, info=info)


def accepted(job: str, **info: Any) -> None:
    """A producer was told that `job` is in: from now on it must not be lost."""
    _write("accepted", job=job, info=info)


def refused(job: str, **info: Any) -> None:
    """A producer was told no: `job` must never run."""
    _write("refused", job=job, info=info)


# -- entries --


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. at: CLOCK_BOOTTIME seconds, monotonic: CLOCK_MONOTONIC, wall: Unix time, all read by the writer.

    worker: the main process, which is the leader of the session (`Processes` gives every process it spawns a
    session of its own); the writer itself in threads and solo, its parent in prefork.
    """

    kind: str
    at: float
    process: ProcessId
    worker: ProcessId
    attempt: str = ""
    job: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    monotonic: float = 0.0
    wall: float = 0.0
    thread: int = 0
    host: str = ""


def decode(text: bytes | str) -> Entry:
    raw = json.loads(text)
    raw["process"] = ProcessId(*raw["process"])
    raw["worker"] = ProcessId(*raw["worker"])
    return Entry(**raw)


def compose(kind: str, *, attempt: str = "", job: str = "", info: Mapping[str, Any]) -> str:
    """The text of an entry made here and now."""
    me, main = _identity()
    entry = {
        "kind": kind,
        "at": boot_time(),
        "monotonic": time.monotonic(),
        "wall": time.time(),
        "process": [me.pid, me.start],
        "worker": [main.pid, main.start],
        "thread": threading.get_native_id(),
        "host": socket.gethostname(),
        "attempt": attempt,
        "job": job,
        "info": dict(info),
    }
    return json.dumps(entry)


def _write(kind: str, *, attempt: str = "", job: str = "", info: Mapping[str, Any]) -> None:
    text = compose(kind, attempt=attempt, job=job, info=info)
    url = os.environ.get(VARIABLE)
    if not url:
        raise LedgerError(
            f"{VARIABLE} is not set: take the `ledger` fixture and give its env() to the process"
        )
    _connection(url).append(text)


def _identity() -> tuple[ProcessId, ProcessId]:
    mine = stat(os.getpid())
    if mine is None:
        raise LedgerError("/proc does not know this process")
    if mine.session == 0:  # the leader is outside of this container: nobody here can see or kill it
        return mine.id, mine.id
    main = stat(mine.session)
    return mine.id, main.id if main else ProcessId(mine.session, 0)


def _connection(url: str) -> Connection:
    """One connection per thread; after a fork the child makes its own (the parent's would mix their replies)."""
    key = (os.getpid(), url)
    if getattr(_local, "key", None) != key:
        if old := getattr(_local, "connection", None):
            old.close()
        _local.connection = Connection(url)
        _local.key = key
    found: Connection = _local.connection
    return found


def close() -> None:
    """Close this thread's connection (the test process; workers just end)."""
    if getattr(_local, "key", None) is not None:
        _local.connection.close()
        _local.key = None


class Connection:
    """A bare connection to the ledger's server: one command, one reply, no retries, no repeats."""

    def __init__(self, url: str) -> None:
        self.stream = parse_qs(urlsplit(url).query)["stream"][0]
        self.socket = connect(url)
        self.socket.settimeout(_TIMEOUT)
        self._frames = Frames()

    def append(self, text: str) -> None:
        self.ask("XADD", self.stream, "*", "e", text)

    def ask(self, *words: str) -> Any:
        self.socket.sendall(encode(*words))
        frame = self._reply()
        if frame.kind == "-":
            raise LedgerError(frame.value.decode())
        return frame.value

    def _reply(self) -> Frame:
        while True:
            if frames := self.received():
                return frames[0]

    def received(self) -> list[Frame]:
        """The whole replies in what has arrived; waits for something to arrive."""
        data = self.socket.recv(65536)
        if not data:
            raise LedgerError("the ledger's server closed the connection")
        return self._frames.feed(data)

    def close(self) -> None:
        self.socket.close()

    def __del__(self) -> None:
        self.close()  # a thread that ends takes its connection with it
