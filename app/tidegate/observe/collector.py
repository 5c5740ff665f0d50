"""One snapshot of the store as metric families. Nothing is remembered between scrapes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from tidegate.config import Settings
from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.observe import bound
from tidegate.store import QueueCounts, Snapshot, Store
from tidegate.telemetry.catalog import (
    CATALOG,
    FATE,
    QUEUE,
    REASON,
    REPLAY,
    RESOURCE,
    RESULT,
    SCHEDULE,
    WORKER,
    Kind,
    metric,
)

log = logging.getLogger(__name__)

#: label values in the catalogue's order → number
Samples: TypeAlias = Mapping[tuple[str, ...], float]


class FleetCollector(Collector):
    """Asks the store once per scrape. A store that does not answer gives `tidegate_store_up 0` and no old numbers."""

    def __init__(self, store: Store, settings: Settings, release: str) -> None:
        self._store, self._settings, self._release = store, settings, release
        self._down = False

    def describe(self) -> Iterable[Family]:
        """The names, without asking the store: what a registry wants to know, and what `name[]=` chooses from."""
        return [family(one.name, {}) for one in CATALOG if one.exported]

    def collect(self) -> Iterator[Family]:
        """All families of one scrape."""
        found = self.look()
        yield family("tidegate_build_info", {(self._release,): 1})
        yield family("tidegate_store_up", {(): float(found is not None)})
        if found is not None:
            top = self._settings.observability.top_tenants
            yield from families(found, self._settings.queues, self._settings.schedules, top)

    def look(self) -> Snapshot | None:
        """The snapshot; None if the store cannot be read, which is logged when it begins and when it ends."""
        try:
            found = self._store.snapshot()
        except (StoreUnavailable, StoreRefused) as error:
            if not self._down:
                log.warning("no numbers until the store answers: %s", error)
            self._down = True
            return None
        if self._down:
            log.warning("the store answers again")
        self._down = False
        return found


def families(
    found: Snapshot, declared: Collection[str], schedules: Collection[str], top: int
) -> Iterator[Family]:
    """What a snapshot tells, by the catalogue's names. Pure.

    declared, schedules: queues and schedules that never lose their series; top: tenants that have one of their own.
    """
    queues = bound.queues(found.queues, declared, QUEUE.most)
    yield family("tidegate_queue_depth", dict(_states(queues)))
    yield family("tidegate_queue_limit", {(name,): one.limit for name, one in queues.items()})
    yield family(
        "tidegate_queue_oldest_age_seconds",
        {
            (name, cause): age / 1000
            for name, one in queues.items()
            for cause, age in (("capacity", one.capacity_age_ms), ("limit", one.limit_age_ms))
        },
    )
    yield family("tidegate_queue_paused", {(name,): one.paused for name, one in queues.items()})
    offers: dict[tuple[str, ...], float] = {(name, "accepted"): one.taken for name, one in queues.items()}
    yield family("tidegate_enqueues_total", offers | bound.counts(found.refused, queues, RESULT.values[1:]))
    yield from _tenants(found, queues, top)
    yield family(
        "tidegate_queue_pressure",
        {(name,): bound.LEVELS.index(one.pressure) for name, one in queues.items()},
    )
    yield family("tidegate_dead_letters", {(name,): one.dead for name, one in queues.items()})
    yield family("tidegate_dead_letters_total", bound.counts(found.died, queues, REASON.values))
    yield family("tidegate_replays_total", {(word,): found.replays.get(word, 0) for word in REPLAY.values})
    shown_schedules = bound.names([*schedules, *(name for name, _ in found.fires)], SCHEDULE.most)
    yield family("tidegate_fires_total", bound.counts(found.fires, shown_schedules, FATE.values))
    yield family("tidegate_fire_lag_seconds", {(): found.fire_lag_ms / 1000})
    yield family("tidegate_leases_expired_total", {(): found.leases_expired})
    yield family("tidegate_stale_reports_total", {(): found.stale_reports})
    alive = bound.workers(found.workers, WORKER.most)
    yield family("tidegate_worker_up", {(name,): number for name, number in alive.items()})
    used = found.memory_used / found.memory_max if found.memory_max else 0.0
    yield family("tidegate_store_memory_ratio", {(): used})
    yield family("tidegate_store_reset_total", {(): found.resets})


def _tenants(found: Snapshot, queues: Mapping[str, QueueCounts], top: int) -> Iterator[Family]:
    ages = bound.tenants(found.tenant_ages, queues, top)
    yield family("tidegate_tenant_oldest_age_seconds", {key: age / 1000 for key, age in ages.items()})
    shown = found.tenants[: RESOURCE.most]  # the busiest come first
    yield family("tidegate_resource_in_use", {(f"tenant:{one.name}",): one.running for one in shown})
    limited = [one for one in shown if one.limit is not None]
    yield family("tidegate_resource_limit", {(f"tenant:{one.name}",): one.limit or 0 for one in limited})


def _states(queues: Mapping[str, QueueCounts]) -> Iterator[tuple[tuple[str, str], float]]:
    for name, one in queues.items():
        yield (name, "waiting"), one.waiting
        yield (name, "delayed"), one.delayed
        yield (name, "retry_waiting"), one.retry_waiting
        yield (name, "running"), one.running
        yield (name, "failed"), one.failed


def family(name: str, samples: Samples) -> Family:
    """A family of the catalogue. KeyError for a name that is not in it."""
    one = metric(name)
    make = CounterMetricFamily if one.kind is Kind.COUNTER else GaugeMetricFamily
    made = make(name, one.text, labels=[label.name for label in one.labels])
    for labels, value in samples.items():
        made.add_metric(labels, value)
    return made
