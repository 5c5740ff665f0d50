"""When a body gets its timer."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

from billiard.pool import Pool as BilliardPool

from tidegate.worker.time_limit import SOON, TimeLimits


@dataclass
class Pool:
    """What Celery's pool has to offer here."""

    timers: dict[int, tuple[float | None, float | None]] = field(default_factory=dict)

    def on_timeout_set(self, result: Any, soft: float | None, hard: float | None) -> None:
        self.timers[result._job] = (soft, hard)

    def on_timeout_cancel(self, result: Any) -> None:
        self.timers.pop(result._job, None)


@dataclass
class Result:
    _job: int


class Hub:
    def __init__(self) -> None:
        self.looks: list[Any] = []

    def call_repeatedly(self, _seconds: float, callback: Any) -> None:
        self.looks.append(callback)


def attached() -> tuple[TimeLimits, Pool, Hub, list[float]]:
    now = [100.0]
    limits, pool, hub = TimeLimits(lambda: now[0]), Pool(), Hub()
    limits.attach(pool, hub)
    return limits, pool, hub, now


def test_a_short_body_never_has_one() -> None:
    limits, pool, hub, now = attached()
    limits.set(Result(1), None, 600)
    now[0] += SOON / 2
    hub.looks[0]()
    limits.cancel(Result(1))
    now[0] += SOON
    hub.looks[0]()
    assert pool.timers == {}


def test_one_that_lasts_gets_the_rest_of_its_limits_and_loses_it_at_its_end() -> None:
    limits, pool, hub, now = attached()
    limits.set(Result(1), 10, 600)
    now[0] += SOON
    limits.set(Result(2), None, 600)
    hub.looks[0]()
    assert pool.timers == {1: (10 - SOON, 600 - SOON)}
    limits.cancel(Result(1))
    assert pool.timers == {}


def test_a_short_limit_counts_at_once() -> None:
    limits, pool, _, _ = attached()
    limits.set(Result(1), None, 2 * SOON)
    assert pool.timers == {1: (None, 2 * SOON)}


def test_no_limit_is_no_timer() -> None:
    limits, pool, hub, now = attached()
    limits.set(Result(1), None, 0)
    now[0] += 10
    hub.looks[0]()
    assert pool.timers == {}


def test_a_pool_that_registers_again_keeps_its_bodies_limits() -> None:
    limits, pool, hub, now = attached()
    limits.set(Result(1), None, 600)
    again = Pool()
    limits.attach(again, hub)
    now[0] += 5
    assert len(hub.looks) == 1
    hub.looks[0]()
    assert again.timers == {1: (None, 595.0)}
    assert pool.timers == {}


def test_a_pool_gives_its_handlers_to_each_job() -> None:
    """What Celery 5.7 with billiard 4.3 does, and `attach` relies on."""
    source = inspect.getsource(BilliardPool.apply_async)
    assert "on_timeout_set=self.on_timeout_set" in source
    assert "on_timeout_cancel=self.on_timeout_cancel" in source
