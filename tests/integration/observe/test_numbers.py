"""What a scrape says is what was done to the fleet."""

from __future__ import annotations

import pytest
from tests.harness.fixtures import OwnServer
from tests.integration.observe.conftest import MakeRig, get, scrape, series
from tests.lua.rig import LEASE, Rig, limit

from tidegate import __version__
from tidegate.domain.job import OutcomeKind, SettleWord
from tidegate.domain.states import Reason
from tidegate.observe import Exporter
from tidegate.retry import Authority, retry_policy
from tidegate.telemetry.catalog import CATALOG, QUEUE

STATES = ("waiting", "delayed", "retry_waiting", "running", "failed")


def depths(url: str, queue: str = "default") -> dict[str, float]:
    """By state, without those at 0."""
    found = scrape(url)
    by_state = {state: series(found, "queue_depth", queue=queue, state=state) for state in STATES}
    return {state: number for state, number in by_state.items() if number}


def test_known_series_are_there_from_the_first_scrape(url: str) -> None:
    found = scrape(url)
    for queue in ("default", "small"):
        for state in STATES:
            assert series(found, "queue_depth", queue=queue, state=state) == 0
        assert series(found, "queue_oldest_age_seconds", queue=queue, cause="capacity") == 0
        assert series(found, "queue_pressure", queue=queue) == 0
        assert series(found, "dead_letters", queue=queue) == 0
    assert series(found, "queue_limit", queue="small") == 10
    for name in ("leases_expired_total", "stale_reports_total", "store_reset_total"):
        assert series(found, name) == 0
    assert series(found, "store_up") == 1
    assert series(found, "build_info", version=__version__) == 1


def test_a_scrape_has_the_catalogues_metrics_and_labels_and_no_others(rig: Rig, url: str) -> None:
    rig.worker()
    rig.limits(tenant=limit(conc=1))
    rig.tick(1_000)
    rig.put("runs", "waits")
    rig.take(2)
    rig.client.hset(f"{rig.store.key_prefix}fates", "daily emitted", 1)
    exported = {one.name: {label.name for label in one.labels} for one in CATALOG if one.exported}
    seen = {name: {label for label, _ in labels} for name, labels in scrape(url)}
    assert seen == exported
    closed = {
        (one.name, label.name): set(label.values) for one in CATALOG for label in one.labels if label.values
    }
    for name, labels in scrape(url):
        for label, value in labels:
            assert value in closed.get((name, label), {value})


def test_help_and_type_are_the_catalogues(url: str) -> None:
    _, text = get(f"{url}/metrics")
    for one in CATALOG:
        assert (f"# TYPE {one.name} {one.kind.value}\n" in text) is one.exported
        assert (f"# HELP {one.name} {one.text}\n" in text) is one.exported


def test_depth_by_state_follows_the_jobs(rig: Rig, url: str) -> None:
    rig.worker()
    rig.tick(1_000)
    rig.put(*(f"op-{n}" for n in range(6)))
    rig.put("later", delay_ms=3_600_000)
    assert depths(url) == {"waiting": 6, "delayed": 1}
    first, second, third = rig.take(3)
    assert depths(url) == {"waiting": 3, "delayed": 1, "running": 3}
    rig.end(first)
    rig.end(second, OutcomeKind.FAILED, Reason.ERROR)
    assert depths(url) == {"waiting": 3, "delayed": 1, "running": 1, "failed": 1}
    assert Authority(rig.store, lambda task: retry_policy(rig.settings.task(task))).step().retries == 1
    assert depths(url) == {"waiting": 3, "delayed": 1, "running": 1, "retry_waiting": 1}
    rig.end(third, OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK)
    assert depths(url) == {"waiting": 3, "delayed": 1, "retry_waiting": 1}
    assert series(scrape(url), "dead_letters", queue="default") == 1
    assert series(scrape(url), "dead_letters", queue="small") == 0


def test_age_counts_from_eligible_and_is_0_without_waiting_jobs(rig: Rig, url: str) -> None:
    def age(queue: str = "default") -> float:
        return series(scrape(url), "queue_oldest_age_seconds", queue=queue, cause="capacity")

    rig.worker()
    rig.put("later", delay_ms=36_000_000)
    rig.tick(1_000_000)
    assert age() == 0, "delayed is not waiting"
    rig.put("waits")
    rig.tick(90_000)
    assert (age(), age("small")) == (90, 0)
    rig.one()
    assert age() == 0, "it runs"


def test_pressure_is_the_fill_of_the_queue(rig: Rig, url: str) -> None:
    levels = []
    for n in range(10):
        rig.put(f"op-{n}", queue="small")
        levels.append(series(scrape(url), "queue_pressure", queue="small"))
    assert levels == [0] * 6 + [1, 1, 2, 2]


def test_lost_leases_and_late_reports_are_counted(rig: Rig, url: str) -> None:
    rig.worker()
    rig.tick(1_000)
    rig.put("op")
    job = rig.one()
    rig.live(3_000, alive=(job,))  # heard of once: its end is a crash, not a lost claim
    rig.live(5 * LEASE)
    assert series(scrape(url), "leases_expired_total") == 1
    assert rig.end(job) is SettleWord.STALE
    found = scrape(url)
    assert series(found, "stale_reports_total") == 1
    assert ("tidegate_worker_up", (("worker", "w1"),)) not in found, "it fell silent"


def test_each_live_worker_has_a_series_until_it_leaves(rig: Rig, url: str) -> None:
    rig.worker("w1")
    rig.worker("w2", "small")
    found = scrape(url)
    assert [series(found, "worker_up", worker=name) for name in ("w1", "w2")] == [1, 1]
    rig.store.unregister("w1")
    assert [labels for name, labels in scrape(url) if name == "tidegate_worker_up"] == [(("worker", "w2"),)]


HOSTILE = 'a"b\\c\nd{e="f"} ü # 1'


def test_a_queue_of_any_name_is_one_series(rig: Rig, url: str) -> None:
    rig.put("op", queue=HOSTILE)
    assert depths(url, HOSTILE) == {"waiting": 1}


def test_queues_that_nobody_declared_stay_within_the_bound(rig: Rig, url: str) -> None:
    number = QUEUE.most + 50
    rig.store.enqueue([rig.job(f"op-{n}", queue=f"made-up-{n}") for n in range(number)])
    rig.put("deep-1", "deep-2", queue="made-up-549")
    found = scrape(url)
    limits = {labels[0][1] for name, labels in found if name == "tidegate_queue_limit"}
    assert len(limits) == QUEUE.most
    assert {"default", "small", "made-up-549", "other"} <= limits
    assert sum(value for (name, _), value in found.items() if name == "tidegate_queue_depth") == number + 2


@pytest.mark.parametrize("limit", [0, 512 * 2**20])
def test_memory_is_a_share_of_the_limit(make_rig: MakeRig, own_server: OwnServer, limit: int) -> None:
    rig = make_rig(own_server(options={"maxmemory": str(limit)}), "memory")
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        share = series(scrape(exporter.url), "store_memory_ratio")
    used = rig.client.info("memory")["used_memory"]
    assert share == pytest.approx(used / limit if limit else 0, rel=0.5)


def test_several_exporters_say_the_same(rig: Rig, url: str) -> None:
    rig.put(*(f"op-{n}" for n in range(5)))
    with Exporter(rig.store, rig.settings, __version__) as second:
        mine, other = scrape(url), scrape(second.url)
    memory = ("tidegate_store_memory_ratio", ())
    assert {**mine, memory: 0} == {**other, memory: 0}


def test_fires_of_declared_schedules_are_there_before_the_first(rig: Rig, url: str) -> None:
    found = scrape(url)
    assert series(found, "fire_lag_seconds") == 0
    rig.client.hset(f"{rig.store.key_prefix}fates", "undeclared emitted", 2)
    found = scrape(url)
    assert series(found, "fires_total", schedule="undeclared", fate="emitted") == 2
    assert series(found, "fires_total", schedule="undeclared", fate="missed") == 0
