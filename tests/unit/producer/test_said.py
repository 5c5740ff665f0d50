"""Words about a job, wherever they are said."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tidegate.domain.errors import InvalidJob
from tidegate.worker.context import ambient, context
from tidegate.worker.said import NOTHING, Said, duration_ms, instant_ms

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("value", "ms"),
    [(1, 1000), (0.25, 250), ("250ms", 250), ("2h", 7_200_000), (timedelta(minutes=1), 60_000), (0.0001, 1)],
)
def test_durations(value: Any, ms: int) -> None:
    assert duration_ms(value, "delay") == ms


@pytest.mark.parametrize(
    "value", [0, -1, "x", "", "1 h", None, True, [1], float("nan"), float("inf"), timedelta(0)]
)
def test_no_durations(value: Any) -> None:
    with pytest.raises(InvalidJob) as raised:
        duration_ms(value, "delay")
    assert raised.value.where == "delay"


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (60, NOW_MS + 60_000),
        ("10m", NOW_MS + 600_000),
        (timedelta(seconds=1), NOW_MS + 1000),
        (datetime(1970, 1, 1, 1, tzinfo=UTC), 3_600_000),
        (datetime(1970, 1, 1, 9, tzinfo=timezone(timedelta(hours=8))), 3_600_000),
        ("1970-01-01T01:00:00+00:00", 3_600_000),
        ("1970-01-01T01:00:00Z", 3_600_000),
    ],
)
def test_instants(value: Any, ms: int) -> None:
    assert instant_ms(value, "deadline", NOW_MS) == ms


@pytest.mark.parametrize("value", [datetime(2026, 3, 8), "2026-03-08T09:00:00", "soon", -5, True, None, b"x"])
def test_no_instants(value: Any) -> None:
    with pytest.raises(InvalidJob) as raised:
        instant_ms(value, "deadline", NOW_MS)
    assert raised.value.where == "deadline"


def test_reading_checks_every_word() -> None:
    said = Said.read(
        {
            "tenant": "acme",
            "operation_id": "op",
            "idempotency_key": ["a", 1],
            "priority": 5,
            "queue_timeout": "1m",
            "deadline": 60,
            "resources": ["key:c"],
            "cost": {"tokens": 3},
            "unknown": 1,
        },
        NOW_MS,
        amqp=True,
    )
    assert said == Said(
        tenant="acme",
        operation_id="op",
        idempotency_key='["a",1]',
        priority="urgent",
        queue_timeout=60_000,
        deadline=NOW_MS + 60_000,
        resources=("key:c",),
        cost={"tokens": 3},
    )


@pytest.mark.parametrize(
    "words",
    [
        {"tenant": ""},
        {"operation_id": 7},
        {"idempotency_key": 7},
        {"priority": "highest"},
        {"queue_timeout": -1},
        {"deadline": "x"},
        {"resources": "key:c"},
        {"resources": [""]},
        {"cost": 3},
        {"cost": {"tokens": -1}},
        {"cost": {"tokens": True}},
        {"cost": {"": 1}},
    ],
)
def test_wrong_words_are_refused_by_name(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob) as raised:
        Said.read(words, NOW_MS)
    assert raised.value.where.startswith(next(iter(words)))


def test_nothing_said_is_one_value() -> None:
    assert Said.read({}, NOW_MS) is Said.read({"tenant": None, "x": 1}, NOW_MS) is NOTHING


def test_over() -> None:
    upper, lower = Said(tenant="a"), Said(tenant="b", deadline=5)
    assert upper.over(lower) == Said(tenant="a", deadline=5)
    assert NOTHING.over(lower) is lower
    assert upper.over(NOTHING) is upper


def test_contexts_add_up_and_the_inner_one_wins() -> None:
    assert ambient() is NOTHING
    with context(tenant="acme", priority="low"):
        with context(operation_id="op", priority="high"):
            assert ambient() == Said(tenant="acme", operation_id="op", priority="high")
        assert ambient() == Said(tenant="acme", priority="low")
    assert ambient() is NOTHING


def test_a_context_ends_with_its_block_also_by_an_error() -> None:
    with pytest.raises(ZeroDivisionError), context(tenant="acme"):
        1 / 0
    assert ambient() is NOTHING


def test_a_relative_deadline_counts_from_the_start_of_the_block() -> None:
    with context(deadline=60):
        assert ambient().deadline == ambient().deadline
        assert ambient().deadline is not None


def test_contexts_do_not_leak_between_threads_and_tasks() -> None:
    seen: dict[str, str | None] = {}

    async def ask(tenant: str, both_inside: asyncio.Barrier) -> None:
        with context(tenant=tenant):
            await both_inside.wait()
            seen[tenant] = ambient().tenant

    async def both() -> None:
        both_inside = asyncio.Barrier(2)
        await asyncio.gather(ask("a", both_inside), ask("b", both_inside))

    asyncio.run(both())
    with context(tenant="main"):
        thread = threading.Thread(target=lambda: seen.update(thread=ambient().tenant))
        thread.start()
        thread.join()
    assert seen == {"a": "a", "b": "b", "thread": None}


@pytest.mark.parametrize("words", [{"tenent": "x"}, {"idempotency_key": "k"}, {"tenant": ""}])
def test_a_context_refuses_what_it_does_not_know(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob), context(**words):
        pytest.fail("the block must not run")
