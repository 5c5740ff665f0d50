"""Keeps labels within the catalogue's bounds: what is too much is merged into one series, `other`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
        if field.name not in ("oldest_age_ms", "pressure")
    }
    return QueueCounts(
        **sums,
        oldest_age_ms=max(part.oldest_age_ms for part in parts),
        pressure=max((part.pressure for part in parts), key=LEVELS.index),
    )


def workers(found: Sequence[WorkerInfo], most: int) -> Mapping[str, int]:
    """Worker id → 1, and `other` → how many more there are."""
    ids = sorted(worker.worker_id for worker in found)
    if len(ids) <= most:
        return dict.fromkeys(ids, 1)
    kept = ids[: most - 1]
    return {**dict.fromkeys(kept, 1), OTHER: len(ids) - len(kept)}
