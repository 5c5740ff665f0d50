"""What a channel needs to know of its fleet, per process: settings, the store, and (in a worker) the desk that claims.

Celery hands kombu nothing but a URL and plain options, so a channel finds its fleet by the name in
`transport_options["tidegate"]`. Nothing here connects until somebody publishes or consumes.
"""

from __future__ import annotations

import difflib
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tidegate.config import Settings
from tidegate.domain.errors import UnknownQueue
from tidegate.domain.job import ClaimedJob, LeaseRef, Outcome, SettleWord
from tidegate.store import ClaimChannel, ClaimReply, Store

if TYPE_CHECKING:
    from tidegate.transport.claim import ClaimLoop

OPTION = "tidegate"


class LeaseBook(Protocol):
    """The part of a worker's lease table that a channel uses."""

    draining: bool
    parked: bool

    def register(self, jobs: tuple[ClaimedJob, ...], sent_ns: int | None = None) -> None: ...
    def startable(self, ref: LeaseRef) -> bool: ...
    def end(self, outcome: Outcome) -> bool: ...
    def take_outcomes(self, limit: int = 32) -> tuple[Outcome, ...]: ...
    def unreported(self) -> int: ...
    def settled(self, batch: tuple[Outcome, ...], words: tuple[SettleWord, ...]) -> None: ...
    def put_back(self, batch: tuple[Outcome, ...]) -> None: ...
    def free_slots(self, total: int) -> int: ...
    def unfinished(self, ref: LeaseRef) -> bool: ...


class Desk(Protocol):
    """A worker process as its claim connection sees it. It outlives channels and connections."""

    #: set by the channel that consumes: send the next claim now, if one is due
    ask: Callable[[], None]

    @property
    def worker_id(self) -> str: ...
    @property
    def claims(self) -> ClaimChannel: ...
    @property
    def leases(self) -> LeaseBook: ...

    def may_claim(self) -> bool:
        """True once the store knows this worker (claims would be answered `unknown` before)."""

    def server_now_ms(self) -> int:
        """The server's clock, as far as the last claim told it."""

    def on_reply(self, reply: ClaimReply, sent_ns: int, received_ns: int) -> None:
        """A claim was answered: the clock offset, the liveness of the consumer, calls to reassert."""


class Binding:
    """One fleet in this process. Thread-safe; a forked child gets a store of its own."""

    def __init__(self, name: str, settings: Settings, resolve: Callable[[Settings], str]) -> None:
        self.name = name
        self.settings = settings
        #: set in the main process of a worker, before its first channel
        self.desk: Desk | None = None
        #: its conversation about new jobs
        self.loop: ClaimLoop | None = None
        self._resolve = resolve
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._pid = 0
        self._consumed: set[str] = set()

    @property
    def store(self) -> Store:
        """The store of this process, opened at first use.

        StoreUnavailable, StoreRefused, or what starting the embedded server raises.
        """
        if self._store is None or self._pid != os.getpid():
            with self._lock:
                self._open()
        assert self._store is not None
        return self._store

    def _open(self) -> None:
        if self._store is not None and self._pid == os.getpid():
            return
        url = self._resolve(self.settings)
        self._store = Store.open(self.settings, "worker" if self.desk is not None else "producer", url=url)
        self._pid = os.getpid()

    def after_fork(self) -> None:
        """Forget what belongs to the parent: its store, its desk, and a lock that a thread of it may hold."""
        self._lock = threading.Lock()
        self._store = None
        self.desk = self.loop = None

    def close(self) -> None:
        """Close the store of this process; the next use opens another."""
        with self._lock:
            store, self._store = self._store, None
            if store is not None and self._pid == os.getpid():
                store.close()

    def consume(self, queue: str) -> None:
        """A worker takes jobs from this queue. UnknownQueue if it is not declared and `[queues] open` is off."""
        if not self.settings.declares(queue):
            raise UnknownQueue(queue, nearest(queue, self.settings))
        self._consumed.add(queue)

    def is_task_queue(self, queue: str) -> bool:
        """True if jobs live in it: declared in the settings, or consumed by this worker.

        Reply, control and event queues of Celery are neither; they stay with kombu's own implementation.
        """
        return queue in self.settings.queues or queue in self._consumed


def nearest(queue: str, settings: Settings) -> str:
    """The declared queue whose name is most like this one, or an empty text."""
    found = difflib.get_close_matches(queue, list(settings.queues), n=1)
    return found[0] if found else ""


_bindings: dict[str, Binding] = {}


def bind(name: str, settings: Settings, resolve: Callable[[Settings], str]) -> Binding:
    """Make a fleet known to the channels of this process; the same settings again change nothing.

    resolve: the URL of the store (starts the embedded server where that is the store), called at first use.
    """
    known = _bindings.get(name)
    if known is not None and known.settings == settings:
        return known
    if known is not None:
        known.close()
    _bindings[name] = binding = Binding(name, settings, resolve)
    return binding


def binding(name: str) -> Binding:
    """The fleet of that name. KeyError would look like a lost connection to kombu: LookupError instead."""
    found = _bindings.get(name)
    if found is None:
        raise LookupError(f"no Tidegate fleet {name!r} in this process: call tidegate.install(app) first")
    return found


def bindings() -> tuple[Binding, ...]:
    """All fleets of this process."""
    return tuple(_bindings.values())


def _after_fork() -> None:
    for one in _bindings.values():
        one.after_fork()


os.register_at_fork(after_in_child=_after_fork)
