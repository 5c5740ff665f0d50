"""The fleet in numbers, as values, and how the snapshot script's reply becomes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.domain.job import Pressure
from tidegate.store.call import WorkerInfo
from tidegate.store.keyspace import decode
from tidegate.store.start import EPOCH_BASE

_PRESSURES = tuple(Pressure)

#: seconds: a beat process says every second that it is there
BEAT_SILENT = 5.0


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Jobs of one queue by state. depth: what its bound counts; limit: its bound, as the store has it.

    oldest_age_ms: of the oldest waiting job, whatever it waits for; capacity_age_ms: of the oldest that waits for a
    worker; limit_age_ms: of the oldest at a limit of its tenant or of another resource. All count from the time at
    which the attempt became eligible, and are 0 if there is none. taken: jobs ever accepted, replays included.
    """

    waiting: int
    delayed: int
    running: int
    failed: int
    retry_waiting: int
    dead: int
    depth: int
    limit: int
    oldest_age_ms: int
    pressure: Pressure
    capacity_age_ms: int = 0
    limit_age_ms: int = 0
    taken: int = 0
    paused: bool = False


@dataclass(frozen=True, slots=True)
class TenantNow:
    """Attempts of a tenant that run now, and how many may (None: any number)."""

    name: str
    running: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fleet in numbers, from one instant (`now_ms`, server time).

    tenants: those with running jobs or with one of the oldest lanes of a queue, the busiest first. tenant_ages: (queue,
    tenant) → age of its oldest waiting job, for the tenants of the oldest lanes. died: (queue, reason) → deaths.
    refused: (queue, answer) → jobs not accepted; replays: answer → dead letters.
    beat_ms: when a beat process was last heard of.
    fires: (schedule, fate) → fires; fire_lag_ms: how late the latest one was.
    """

    now_ms: int
    epoch: int
    held_ms: int
    resets: int
    stale_reports: int
    leases_expired: int
    failed: int
    dead: int
    queues: Mapping[str, QueueCounts]
    workers: tuple[WorkerInfo, ...]
    memory_used: int
    memory_max: int  #: 0 = the server has no limit
    server: str
    beat_ms: int = 0
    tenants: tuple[TenantNow, ...] = ()
    tenant_ages: Mapping[tuple[str, str], int] = field(default_factory=dict)
    died: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refused: Mapping[tuple[str, str], int] = field(default_factory=dict)
    replays: Mapping[str, int] = field(default_factory=dict)
    fires: Mapping[tuple[str, str], int] = field(default_factory=dict)
    fire_lag_ms: int = 0

    @property
    def beat_silent_s(self) -> float | None:
        """Seconds since a beat process was heard of; None: never."""
        return (self.now_ms - self.beat_ms) / 1000 if self.beat_ms else None

    @property
    def beat_alive(self) -> bool:
        """True if some beat process is there."""
        return self.beat_silent_s is not None and self.beat_silent_s <= BEAT_SILENT


def snapshot(raw: Sequence[Any], info: Mapping[str, str], memory: tuple[int, int]) -> Snapshot:
    """Reply of snapshot, with what INFO says about the server."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    (_, now, epoch, held, resets, stale, expired, beat, workers, failed, dead, died, refused, replays, fates, lag,
     queues, tenants, ages, _names) = raw  # fmt: skip
    now_ms = int(now)
    return Snapshot(
        now_ms=now_ms,
        epoch=int(epoch) - EPOCH_BASE,
        held_ms=int(held),
        resets=int(resets),
        stale_reports=int(stale),
        leases_expired=int(expired),
        failed=int(failed),
        dead=int(dead),
        queues=dict(_counts(row, now_ms) for row in queues),
        workers=tuple(_worker(text) for text in workers[1::2]),
        memory_used=memory[0],
        memory_max=memory[1],
        server=f"{name} {info.get('valkey_version') or info.get('redis_version', '?')}",
        beat_ms=int(beat),
        tenants=tuple(sorted(map(_tenant, tenants), key=lambda one: (-one.running, one.name))),
        tenant_ages={(_text(q), _text(t)): max(0, now_ms - int(at)) for q, t, at in ages},
        died=_pairs(died),
        refused=_pairs(refused),
        fires=_pairs(fates),
        fire_lag_ms=max(0, int(lag)),
        replays={_text(word): int(number) for word, number in zip(replays[::2], replays[1::2], strict=True)},
    )


def _text(word: bytes) -> str:
    return decode(word.decode())


def _pairs(flat: Sequence[bytes]) -> dict[tuple[str, str], int]:
    """A hash whose fields are two words."""
    found = {}
    for words, number in zip(flat[::2], flat[1::2], strict=True):
        first, _, second = words.decode().partition(" ")
        found[decode(first), decode(second)] = int(number)
    return found


def _tenant(row: Sequence[Any]) -> TenantNow:
    limit = int(row[2])
    return TenantNow(_text(row[0]), int(row[1]), None if limit < 0 else limit)


def _counts(raw: Sequence[Any], now_ms: int) -> tuple[str, QueueCounts]:
    name, limit, paused, free, limited, book = raw
    taken, gone, delayed, failed, dead, running, retry_waiting = map(
        int, (book or b"0 0 0 0 0 0 0 0").split()[:7]
    )
    depth, most = taken - gone, int(limit)
    capacity_age, limit_age = (max(0, now_ms - int(at)) if int(at) else 0 for at in (free, limited))
    return _text(name), QueueCounts(
        waiting=depth - delayed - failed - running - retry_waiting,
        delayed=delayed,
        running=running,
        failed=failed,
        retry_waiting=retry_waiting,
        dead=dead,
        depth=depth,
        limit=most,
        oldest_age_ms=max(capacity_age, limit_age),
        pressure=_PRESSURES[(depth >= 0.7 * most) + (depth >= 0.9 * most)] if most >= 0 else Pressure.GREEN,
        capacity_age_ms=capacity_age,
        limit_age_ms=limit_age,
        taken=taken,
        paused=bool(int(paused)),
    )


def _worker(text: bytes) -> WorkerInfo:
    fields = json.loads(text)
    return WorkerInfo(**{**fields, "queues": tuple(fields["queues"])})
