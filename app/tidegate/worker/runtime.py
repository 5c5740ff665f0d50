"""What one worker process has exactly one of: its identity, its lease table, its conversation about new jobs.

Made once in the main process, before anything connects; a forked child has none.
"""

from __future__ import annotations

import functools
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

from tidegate.config import Settings
from tidegate.store import ClaimChannel, ClaimReply, Store
from tidegate.transport.binding import Binding
from tidegate.transport.claim import ClaimLoop
from tidegate.worker.lease_table import LeaseTable


class Runtime:
    """The desk of a worker: it outlives channels, connections and reconnects."""

    def __init__(self, fleet: Binding) -> None:
        self.fleet = fleet
        #: random per start, never a host name or a pid: two workers must never be taken for one
        self.worker_id = secrets.token_hex(12)
        self.pid = os.getpid()
        self.leases = LeaseTable()
        #: True once the store knows this worker durably; claims wait for that
        self.registered = False
        #: True if bodies run in children of this process (the prefork pool)
        self.forks = True
        #: kombu's event loop, once there is one
        self.hub: Any = None
        #: called when the store wants this worker to beat at once (reassert, register); any thread
        self.hurry: Callable[[], None] = _nobody
        #: send the next claim now, if one is due; main loop only (the channel that consumes sets it)
        self.ask: Callable[[], None] = _nobody
        #: monotonic seconds of the last answer to a claim: whether this worker still consumes
        self.last_reply = 0.0
        self._offset_ms = 0.0

    @property
    def settings(self) -> Settings:
        return self.fleet.settings

    @property
    def store(self) -> Store:
        return self.fleet.store

    @functools.cached_property
    def claims(self) -> ClaimChannel:
        return ClaimChannel(self.store, self.worker_id)

    def may_claim(self) -> bool:
        return self.registered

    def server_now_ms(self) -> int:
        """The server's clock as the last claim told it, never further ahead than it is."""
        return round(time.monotonic() * 1000 + self._offset_ms)

    def on_reply(self, reply: ClaimReply, sent_ns: int, received_ns: int) -> None:
        self.last_reply = time.monotonic()
        if reply.jobs:
            self._offset_ms = reply.jobs[0].claimed_ms - self.last_reply * 1000
        if reply.held_ms > 0 or not reply.known:
            self.hurry()

    def consumer_age(self) -> float:
        """Seconds since the last answer to a claim: a parked worker is answered about once a second."""
        return time.monotonic() - self.last_reply if self.last_reply else 0.0


def _nobody() -> None:
    """No heartbeat runs yet; the first one will find out by itself."""


_runtime: Runtime | None = None


def open_runtime(fleet: Binding) -> Runtime:
    """The runtime of this worker process; made at the first call, before its first channel."""
    global _runtime
    if _runtime is None or _runtime.pid != os.getpid() or _runtime.fleet is not fleet:
        _runtime = Runtime(fleet)
        fleet.desk = _runtime
        fleet.loop = ClaimLoop(_runtime)
    return _runtime


def current() -> Runtime | None:
    """The runtime, if this is the main process of a worker."""
    return _runtime if _runtime is not None and _runtime.pid == os.getpid() else None


def required() -> Runtime:
    """The runtime; RuntimeError in any other process than the main one of a worker."""
    found = current()
    if found is None:
        raise RuntimeError("this is not the main process of a Tidegate worker")
    return found
