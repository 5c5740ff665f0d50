"""The doctor's rules, one at a time: what is wrong with a look at a fleet in which everything else is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import BrokerSettings, QueueSettings, Sections, Settings
from tidegate.domain.job import Pressure
from tidegate.service.diagnosis import Facts, Finding, Level, diagnose
from tidegate.store import Look, QueueCounts, Snapshot, Vitals, WorkerInfo
from tidegate.store.start import SCHEMA

NOW = 1_800_000_000_000
INFO = {
    "valkey_version": "9.1.2",
    "maxmemory_policy": "noeviction",
    "used_memory": str(100 << 20),
    "maxmemory": str(1000 << 20),
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
}
COUNTS = QueueCounts(0, 0, 0, 0, 0, 0, 0, 100, 0, Pressure.GREEN)
WORKER = WorkerInfo("w", "host", 7, ("default",), 4, "r1", "prefork")
SNAPSHOT = Snapshot(
    NOW, 3, 0, 0, 0, 0, 0, 0, {"default": COUNTS}, (WORKER,), 1, 10, "Valkey 9.1.2", NOW - 500
)
VITALS = Vitals(NOW, SCHEMA, False, 0, 0, 0, {"w": NOW - 1_000})


def facts(
    settings: Settings | None = None,
    info: dict[str, str] | None = None,
    ahead: float = 0.0,
    mode: int | None = 0o700,
    snapshot: dict[str, Any] | None = None,
    **vitals: Any,
) -> Facts:
    seen = Look(
        {**INFO, **(info or {})}, ahead, replace(VITALS, **vitals), replace(SNAPSHOT, **(snapshot or {}))
    )
    return Facts(settings or Settings(queues=Sections({"default": QueueSettings()})), seen, mode)


def wrong(found: tuple[Finding, ...]) -> list[tuple[Level, str]]:
    return [(one.level, one.name) for one in found if one.level is not Level.OK]


def test_a_healthy_fleet() -> None:
    found = diagnose(facts())
    assert wrong(found) == []
    assert [one.name for one in found] == [
        "settings", "server", "eviction", "memory", "persistence", "directory", "clock", "schema", "epoch",
        "workers", "beat", "dead letters",
    ]  # fmt: skip


EVICTING = Settings(broker=BrokerSettings(allow_eviction=True))
TWO = replace(COUNTS, waiting=2, depth=2)
THREAD, OTHER = replace(WORKER, pool="thread"), replace(WORKER, worker_id="v", release="r2")


@pytest.mark.parametrize(
    ("case", "level", "name", "said"),
    [
        (facts(info={"valkey_version": "7.2.0"}), "failure", "server", "Valkey 7.2.0 is too old"),
        (facts(info={"maxmemory_policy": "allkeys-lru"}), "failure", "eviction", "allkeys-lru"),
        (facts(EVICTING, info={"maxmemory_policy": "allkeys-lru"}), "warning", "eviction", "can be lost"),
        (facts(info={"maxmemory": "0"}), "warning", "memory", "no limit set"),
        (facts(info={"used_memory": str(700 << 20)}), "warning", "memory", "70% of 1000 MiB"),
        (facts(info={"used_memory": str(850 << 20)}), "failure", "memory", "85% of 1000 MiB"),
        (facts(info={"aof_enabled": "0"}), "warning", "persistence", "no append-only file"),
        (facts(info={"aof_last_write_status": "err"}), "failure", "persistence", "cannot be written"),
        (facts(mode=0o750), "failure", "directory", "mode 750"),
        (facts(ahead=1.2), "warning", "clock", "1.2 s ahead of"),
        (facts(ahead=-3.0), "warning", "clock", "3.0 s behind"),
        (facts(test_clock=True), "warning", "clock", "test clock"),
        (facts(schema=SCHEMA + 1), "failure", "schema", f"key schema {SCHEMA + 1}"),
        (facts(snapshot={"held_ms": 500}), "warning", "epoch", "waits 0.5 s"),
        (facts(heard={"w": NOW - 16_000}), "failure", "workers", "none"),
        (facts(snapshot={"workers": (THREAD,)}), "warning", "workers", "thread pool"),
        (facts(snapshot={"workers": (WORKER, OTHER)}), "warning", "release", "r1, r2"),
        (facts(snapshot={"queues": {"default": COUNTS, "m": COUNTS}}), "warning", "queues", "consumes 'm'"),
        (facts(snapshot={"queues": {"default": COUNTS, "m": TWO}}), "failure", "queues", "2 jobs wait"),
        (facts(snapshot={"beat_ms": NOW - 6_000}), "failure", "beat", "silent for 6 s"),
        (facts(snapshot={"beat_ms": 0}), "failure", "beat", "there never was one"),
        (facts(failed_since_ms=NOW - 11_000, snapshot={"failed": 2}), "failure", "decisions", "2 failed"),
        (facts(untold=3, untold_since_ms=NOW - 11_000), "warning", "results", "3 dead jobs"),
        (facts(snapshot={"dead": 4}), "warning", "dead letters", "4 jobs"),
    ],
)  # fmt: skip
def test_each_rule(case: Facts, level: str, name: str, said: str) -> None:
    found = [one for one in diagnose(case) if one.level is not Level.OK]
    assert (Level(level), name) in [(one.level, one.name) for one in found]
    (one,) = [one for one in found if (one.level, one.name) == (Level(level), name)]
    assert said in one.found
    assert one.level is Level.WARNING or one.remedy, "a failure says what to do next"


def test_a_worker_that_fell_silent_beside_one_that_did_not() -> None:
    case = facts(
        snapshot={"workers": (WORKER, replace(OTHER, release="r1"))}, heard={"w": NOW, "v": NOW - 20_000}
    )
    assert wrong(diagnose(case)) == [(Level.WARNING, "workers")]


def test_what_is_young_is_nothing_to_worry_about() -> None:
    assert wrong(diagnose(facts(failed_since_ms=NOW - 1_000, untold=1, untold_since_ms=NOW - 1_000))) == []


def test_a_store_without_a_fleet_or_with_another_releases() -> None:
    seen = Look(INFO, 0.0, None, None)
    assert wrong(diagnose(Facts(Settings(), seen))) == [(Level.WARNING, "fleet")]
    newer = Look(INFO, 0.0, replace(VITALS, schema=SCHEMA + 1), None)
    assert wrong(diagnose(Facts(Settings(), newer))) == [(Level.FAILURE, "schema")]


def test_warnings_of_the_settings_are_findings() -> None:
    case = facts(
        replace(Settings(), warnings=("queues.default.max_age: not acted on",), source=Path("t.toml"))
    )
    assert wrong(diagnose(case))[0] == (Level.WARNING, "settings")
