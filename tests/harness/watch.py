"""Seeing processes die: the ledger's own witness, so that an attempt without an end can be closed."""

from __future__ import annotations

import os
import select
import threading

from .ledger import Connection, decode
from .processes import Recorder
from .procfs import ProcessId, boot_time, identify
from .resp import encode

_TICK_MS = 20  # how precisely the last moment of a life is known


class DeathWatch:
    """Follows the ledger, holds a pidfd of every process that begins an attempt and of its main process, and
    records their deaths.

    A process that dies is noticed at once and known to have lived at most 20 ms before (machine load aside).
    """

    def __init__(self, url: str, record: Recorder) -> None:
        self._url = url
        self._record = record
        self._alive: dict[int, ProcessId] = {}  # by pidfd
        self._known: set[ProcessId] = set()
        self._last_look = boot_time()
        self._stop_reader, self._stop_writer = os.pipe()
        # An exception in it fails the test: pytest turns unhandled ones of threads into warnings, those are errors.
        self._thread = threading.Thread(target=self._follow, name="death-watch", daemon=True)

    def start(self) -> DeathWatch:
        self._thread.start()
        return self

    def close(self) -> None:
        os.write(self._stop_writer, b"x")
        self._thread.join(timeout=10)
        for descriptor in (self._stop_reader, self._stop_writer, *self._alive):
            os.close(descriptor)
        self._alive.clear()

    def _follow(self) -> None:
        connection = Connection(self._url)
        poller = select.poll()
        poller.register(connection.socket, select.POLLIN)
        poller.register(self._stop_reader, select.POLLIN)
        last = "0"
        try:
            connection.socket.sendall(self._question(connection, last))
            while True:
                ready = [descriptor for descriptor, _ in poller.poll(_TICK_MS)]
                now = boot_time()
                for descriptor in ready:
                    if descriptor in self._alive:
                        poller.unregister(descriptor)
                        self._bury(descriptor, now)
                self._last_look = now
                if connection.socket.fileno() in ready:
                    for frame in connection.received():
                        last = self._read(frame.value, poller)
                        connection.socket.sendall(self._question(connection, last))
                if self._stop_reader in ready:
                    return
        finally:
            connection.close()

    @staticmethod
    def _question(connection: Connection, last: str) -> bytes:
        return encode("XREAD", "COUNT", "200", "BLOCK", "0", "STREAMS", connection.stream, last)

    def _read(self, reply: list[list[list[tuple[bytes, list[bytes]]]]], poller: select.poll) -> str:
        lines = reply[0][1]
        for _, fields in lines:
            entry = decode(fields[1])
            if entry.kind == "begin":
                for process in {entry.process, entry.worker} - self._known:
                    self._known.add(process)
                    self._adopt(process, entry.at, poller)
        return lines[-1][0].decode()

    def _adopt(self, process: ProcessId, seen: float, poller: select.poll) -> None:
        try:
            descriptor = os.pidfd_open(process.pid)
        except ProcessLookupError:
            self._record("death", process, after=seen, before=boot_time())
            return
        if identify(process.pid) != process:
            os.close(descriptor)
            self._record("death", process, after=seen, before=boot_time())
            return
        self._alive[descriptor] = process
        poller.register(descriptor, select.POLLIN)

    def _bury(self, descriptor: int, now: float) -> None:
        process = self._alive.pop(descriptor)
        os.close(descriptor)
        self._record("death", process, after=self._last_look, before=now)
