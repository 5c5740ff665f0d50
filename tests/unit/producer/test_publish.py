"""From a kombu message to a job: what Celery leaves to workers is moved to the store."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tidegate.config import PriorityOrder, QueueSettings, Sections, Settings, TaskSettings, TimeoutSettings
from tidegate.domain.errors import (
    IdempotencyConflict,
    InvalidJob,
    NeverRunnable,
    QueueClosed,
    QueueFull,
    TooLarge,
    UnknownQueue,
)
from tidegate.domain.header import JobHeader
from tidegate.domain.job import Effect, NewJob, Pressure, Priority
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted, Closed, Conflict, Duplicate, Full, TooCostly
from tidegate.transport.envelope import whole
from tidegate.transport.publish import is_task, new_job, refused

NOW = datetime(2026, 3, 8, 9, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
SETTINGS = Settings(queues=Sections({"default": QueueSettings(), "reports": QueueSettings()}))


def message(
    body: Any = '[[1],{"a":2},{}]', *, header: JobHeader | None = None, **more: Any
) -> dict[str, Any]:
    """What kombu hands to a channel."""
    properties = more.pop("properties", {})
    headers = {"task": "t", "id": "i", "eta": None, "expires": None, "timelimit": [None, None], **more}
    if header is not None:
        headers["tidegate"] = header.as_dict()
    return {
        "body": body,
        "content-encoding": "utf-8",
        "content-type": "application/x-tidegate+json",
        "headers": headers,
        "properties": {"priority": 0, "correlation_id": "i", "delivery_info": {}, **properties},
    }


def job(settings: Settings = SETTINGS, queue: str = "default", **more: Any) -> NewJob:
    return new_job(settings, queue, message(**more), NOW_MS)


def stored(made: NewJob) -> dict[str, Any]:
    return whole(json.loads(made.envelope))


def in_(seconds: float, zone: timezone = UTC) -> str:
    return (NOW + timedelta(seconds=seconds)).astimezone(zone).isoformat()


HEADER = JobHeader(tenant="acme", operation_id="op")


def test_a_message_without_our_header_gets_the_default_tenant_and_an_operation_of_its_own() -> None:
    made, other = job(), job()
    assert (made.tenant, made.step, made.task, made.task_id) == ("default", "", "t", "i")
    assert made.operation_id != other.operation_id
    assert not made.known_operation


@pytest.mark.parametrize(("eta", "delay"), [(None, 0), (in_(30), 30_000), (in_(-5), 0)])
def test_eta_becomes_a_delay_and_leaves_the_message(eta: str | None, delay: int) -> None:
    made = job(eta=eta)
    assert made.delay_ms == delay
    assert stored(made)["headers"]["eta"] is None


def test_eta_in_another_zone_and_without_one() -> None:
    assert job(eta=in_(30, timezone(timedelta(hours=8)))).delay_ms == 30_000
    assert job(eta=(NOW + timedelta(seconds=30)).replace(tzinfo=None).isoformat()).delay_ms == 30_000


@pytest.mark.parametrize(
    ("expires", "eta", "own", "timeout"),
    [
        (None, None, 0, 0),
        (in_(60), None, 0, 60_000),
        (in_(60), in_(20), 0, 40_000),  # counted from the entry to the queue
        (in_(60), in_(90), 0, 1),  # over before it begins
        (in_(-1), None, 0, 1),
        (in_(60), None, 5_000, 5_000),
        (in_(60), None, 90_000, 60_000),
        (None, None, 5_000, 5_000),
    ],
)
def test_expires_becomes_a_queue_timeout(
    expires: str | None, eta: str | None, own: int, timeout: int
) -> None:
    made = job(
        expires=expires,
        eta=eta,
        header=replace(HEADER, queue_timeout=own),
        properties={"expiration": "60000"},
    )
    assert made.queue_timeout_ms == timeout
    assert stored(made)["headers"]["expires"] is None
    assert "expiration" not in stored(made)["properties"]


def _tasks(**timeouts: float) -> Settings:
    return replace(SETTINGS, tasks=Sections({"t": TaskSettings(timeouts=TimeoutSettings(**timeouts))}))


@pytest.mark.parametrize(
    ("limit", "own", "settings", "timeout"),
    [
        ([None, None], 0, SETTINGS, 600_000),
        ([None, None], 0, _tasks(attempt=30.0), 30_000),
        ([None, None], 20_000, _tasks(attempt=30.0), 20_000),
        ([5, None], 20_000, _tasks(attempt=30.0), 5_000),
        ([0.25, 0.1], 0, SETTINGS, 250),
        (None, 0, SETTINGS, 600_000),
        ([-1, None], 0, SETTINGS, 600_000),
    ],
)
def test_attempt_timeout(limit: Any, own: int, settings: Settings, timeout: int) -> None:
    made = job(settings, timelimit=limit, header=replace(HEADER, attempt_timeout=own))
    assert made.attempt_timeout_ms == timeout
    assert stored(made)["headers"]["timelimit"] == [None, limit[1] if limit else None]


def test_the_file_speaks_for_messages_of_others() -> None:
    made = job(_tasks(queue=7.0))
    assert made.queue_timeout_ms == 7_000
    assert job(_tasks(queue=float("inf"))).queue_timeout_ms == 0


@pytest.mark.parametrize(
    ("word", "number", "order", "priority"),
    [
        ("", 0, "redis", Priority.NORMAL),
        ("", 5, "redis", Priority.LOW),
        ("", 5, "amqp", Priority.URGENT),
        ("high", 5, "redis", Priority.HIGH),
        ("", None, "redis", Priority.NORMAL),
        ("", "7", "redis", Priority.NORMAL),
    ],
)
def test_priority(word: str, number: Any, order: str, priority: Priority) -> None:
    settings = replace(SETTINGS, fleet=replace(SETTINGS.fleet, priority_order=PriorityOrder(order)))
    made = job(settings, header=replace(HEADER, priority=word), properties={"priority": number})
    assert made.priority is priority


def test_what_the_record_says_is_not_stored_twice() -> None:
    header = replace(
        HEADER, step="s", deadline=5, key="k", effect="none", resources=("key:c",), known=True, cost={"t": 1}
    )
    made = job(header=header, properties={"argsrepr": "()", "kwargsrepr": "{}"})
    assert stored(made)["headers"]["tidegate"] == {"cost": {"t": 1}}
    assert not {"argsrepr", "kwargsrepr"} & stored(made)["properties"].keys()
    assert (made.deadline_ms, made.effect, made.resources, made.known_operation) == (
        5,
        Effect.NONE,
        ("key:c",),
        True,
    )


def test_the_message_itself_is_left_alone() -> None:
    """Receivers of `after_task_publish` read the same headers."""
    given = message(eta=in_(3), header=HEADER)
    before = json.dumps(given)
    new_job(SETTINGS, "default", given, NOW_MS)
    assert json.dumps(given) == before


def test_the_body_is_stored_as_text() -> None:
    assert stored(job(body='[["ü"],{},{}]'))["body"] == '[["ü"],{},{}]'
    assert "ü".encode() in job(body='[["ü"],{},{}]').envelope


def test_a_compressed_body_is_stored_as_base64() -> None:
    found = stored(job(body=b"\x78\x9c\xff"))
    assert (base64.b64decode(found["body"]), found["properties"]["body_encoding"]) == (
        b"\x78\x9c\xff",
        "base64",
    )


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        ('[[1],{"a":1,"b":2},{}]', '[[1],{"b":2,"a":1},{}]', True),
        (
            '[[1],{},{"chain":[{"options":{"task_id":"x"}}]}]',
            '[[1],{},{"chain":[{"options":{"task_id":"y"}}]}]',
            True,
        ),
        ("[[1],{},{}]", "[[2],{},{}]", False),
        ("not json", "not json", True),
        ("not json", "not json either", False),
    ],
)
def test_the_hash_of_a_keyed_body_covers_task_and_arguments(one: str, two: str, equal: bool) -> None:
    keyed = replace(HEADER, key="k")
    assert (job(body=one, header=keyed).body_hash == job(body=two, header=keyed).body_hash) is equal
    assert job(body=one, header=keyed).body_hash != job(body=one, header=keyed, task="other").body_hash
    assert job(body=one, header=HEADER).body_hash == ""


def test_undeclared_queues_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownQueue) as raised:
        job(queue="report")
    assert raised.value.hint == "reports"
    assert job(replace(SETTINGS, queues_open=True), queue="report").queue == "report"


def test_the_size_limit_is_exact() -> None:
    size = len(job(header=HEADER).envelope)
    exact = replace(SETTINGS, fleet=replace(SETTINGS.fleet, max_body=size))
    assert len(job(exact, header=HEADER).envelope) == size
    with pytest.raises(TooLarge) as raised:
        job(replace(SETTINGS, fleet=replace(SETTINGS.fleet, max_body=size - 1)), header=HEADER)
    assert (raised.value.size, raised.value.limit) == (size, size - 1)


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"eta": "tomorrow"}, "eta"),
        ({"expires": "x"}, "expires"),
        ({"other": NOW}, "headers"),
        ({"other": "\ud800"}, "headers"),
        ({"other": float("nan")}, "headers"),
        ({"header": replace(HEADER, tenant="x" * 300)}, "tenant"),
        ({"header": replace(HEADER, operation_id="x" * 300)}, "operation_id"),
        ({"header": replace(HEADER, resources=("",))}, "resources"),
        ({"tidegate": {"tenant": 1}}, "headers.tidegate.tenant"),
    ],
)
def test_invalid_messages_are_refused(more: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        job(**more)
    assert raised.value.where == where


@pytest.mark.parametrize("kind", ["application/x-python-serialize", "application/x-yaml", None])
def test_only_json_is_published(kind: str | None) -> None:
    with pytest.raises(InvalidJob) as raised:
        new_job(SETTINGS, "default", {**message(), "content-type": kind}, NOW_MS)
    assert raised.value.where == "serializer"


def test_an_error_in_place_of_the_header_is_raised() -> None:
    """Celery swallows what a receiver of before_task_publish raises; the message carries it here."""
    with pytest.raises(InvalidJob, match="tenant: empty"):
        job(tidegate=InvalidJob("empty", "tenant", "a name"))


def test_verdicts_as_errors() -> None:
    made = job(header=replace(HEADER, key="k"))
    full = refused(Full("queue:default", 5, 5, 1.5), made)
    assert isinstance(full, QueueFull)
    assert (full.scope, full.depth, full.limit, full.retry_after) == ("queue:default", 5, 5, 1.5)
    conflict = refused(Conflict("op"), made)
    assert isinstance(conflict, IdempotencyConflict)
    assert (conflict.key, conflict.operation_id) == ("k", "op")
    assert isinstance(refused(Closed("default"), made), QueueClosed)
    never = refused(TooCostly("cost:llm/tokens", 900, 500), made)
    assert isinstance(never, NeverRunnable)
    assert (never.resource, never.cost, never.capacity) == ("cost:llm/tokens", 900, 500)
    assert refused(Accepted("op", 1, Pressure.GREEN), made) is None
    assert refused(Duplicate("op", State.RUNNING), made) is None


def test_only_tasks_are_tasks() -> None:
    assert is_task(message())
    assert not is_task({"headers": {"ticket": "x"}})
