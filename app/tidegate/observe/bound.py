"""Keeps labels within the catalogue's bounds: what is too much is merged into one series, `other`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields

from tidegate.domain.job import Pressure
from tidegate.store import QueueCounts, WorkerInfo
from tidegate.telemetry.catalog import OTHER

LEVELS = (Pressure.GREEN, Pressure.YELLOW, Pressure.RED)


def queues(
    found: Mapping[str, QueueCounts], declared: Collection[str], most: int
) -> Mapping[str, QueueCounts]:
    """At most `most` entries: declared queues before others, then the deepest; a queue named `other` joins the rest."""
    if len(found) <= most:
        return found
    order = sorted(found, key=lambda name: (name not in declared, -found[name].depth, name))
    kept = [name for name in order if name != OTHER][: most - 1]
    rest = [counts for name, counts in found.items() if name not in set(kept)]
    return {**{name: found[name] for name in kept}, OTHER: merged(rest)}


def merged(parts: Sequence[QueueCounts]) -> QueueCounts:
    """Several queues as one: sums of counts, the greatest age, the worst pressure."""
    sums = {
        field.name: sum(getattr(part, field.name) for part in parts)
        for field in fields(QueueCounts)
        if not field.name.endswith("_age_ms") and field.name not in ("pressure", "paused")
    }
    return QueueCounts(
        **sums,
        oldest_age_ms=max(part.oldest_age_ms for part in parts),
        capacity_age_ms=max(part.capacity_age_ms for part in parts),
        limit_age_ms=max(part.limit_age_ms for part in parts),
        paused=any(part.paused for part in parts),
        pressure=max((part.pressure for part in parts), key=LEVELS.index),
    )


def counts(
    found: Mapping[tuple[str, str], int], shown: Collection[str], words: Sequence[str]
) -> dict[tuple[str, ...], float]:
    """Counts by (name, word), with 0 where there is none; those of names without a series are in `other`."""
    sums: dict[tuple[str, ...], float] = {(name, word): 0 for name in shown for word in words}
    for (name, word), number in found.items():
        if word in words:
            key = (name if name in shown else OTHER, word)
            sums[key] = sums.get(key, 0) + number
    return sums


def names(found: Iterable[str], most: int) -> tuple[str, ...]:
    """The first of them, each once; one place is kept for `other`."""
    return tuple(dict.fromkeys(found))[: most - 1]


def tenants(
    found: Mapping[tuple[str, str], int], shown: Collection[str], top: int
) -> Mapping[tuple[str, str], int]:
    """Ages by (queue, tenant): the `top` tenants with the oldest jobs, and the greatest age of the rest as `other`."""
    oldest: dict[str, int] = {}
    for (_, tenant), age in found.items():
        oldest[tenant] = max(age, oldest.get(tenant, 0))
    kept = set(sorted(oldest, key=lambda name: (-oldest[name], name))[:top])
    ages: dict[tuple[str, str], int] = {}
    for (queue, tenant), age in found.items():
        key = (queue if queue in shown else OTHER, tenant if tenant in kept else OTHER)
        ages[key] = max(age, ages.get(key, 0))
    return ages


def workers(found: Sequence[WorkerInfo], most: int) -> Mapping[str, int]:
    """Worker id → 1, and `other` → how many more there are."""
    ids = sorted(worker.worker_id for worker in found)
    if len(ids) <= most:
        return dict.fromkeys(ids, 1)
    kept = ids[: most - 1]
    return {**dict.fromkeys(kept, 1), OTHER: len(ids) - len(kept)}
