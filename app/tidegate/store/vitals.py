"""A look at a store that changes nothing in it, makes no fleet and refuses nothing: for the doctor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.config import Settings
from tidegate.store.snapshot import Snapshot
from tidegate.store.start import SCHEMA, information
from tidegate.store.store import Store


@dataclass(frozen=True, slots=True)
class Vitals:
    """Instants in ms of the server's clock; 0: never, or there is nothing. heard: worker id → its last heartbeat."""

    now_ms: int
    schema: int
    test_clock: bool
    untold: int
    failed_since_ms: int
    untold_since_ms: int
    heard: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Look:
    """info: the server's INFO. vitals: None without a fleet of that name; snapshot: nor if another release made it.

    ahead: seconds that the server's clock is ahead of this machine's, known to half the time the question took.
    """

    info: Mapping[str, str]
    ahead: float
    vitals: Vitals | None
    snapshot: Snapshot | None


def look(settings: Settings, url: str) -> Look:
    """Raises StoreUnavailable, StoreRefused (no INFO, no scripts)."""
    store = Store(settings, url)
    try:
        with store._line() as line:
            info = information(line, settings.fleet.enqueue_timeout)
            before = time.time()
            seconds, micro = line.command("TIME", timeout=2.0, repeat=True)
            ahead = int(seconds) + int(micro) / 1e6 - (before + time.time()) / 2
        known = store.known()
        vitals = _vitals(store) if known else None
        same = vitals is not None and vitals.schema == SCHEMA
        return Look(info, ahead, vitals, store.snapshot() if same else None)
    finally:
        store.close()


def _vitals(store: Store) -> Vitals:
    _, now, schema, clock, untold, failed, told, *workers = store._one("vitals")
    return Vitals(
        now_ms=int(now),
        schema=int(schema),
        test_clock=clock != b"-",
        untold=int(untold),
        failed_since_ms=int(failed),
        untold_since_ms=int(told),
        heard={
            worker.decode(): int(float(at)) for worker, at in zip(workers[::2], workers[1::2], strict=True)
        },
    )
