"""From a kombu message to a job of the store: the one door through which every publish of a task passes.

What Celery leaves to workers is moved to the store here: `eta` becomes a delay, `expires` a queue timeout, the hard
time limit an attempt timeout, so that nobody holds a job in memory while it waits and one clock decides. Refusals are
raised as they are: `apply_async` hands them to its caller at once (they derive from plain Exception, see
domain/errors.py).
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from tidegate.config import DEFAULT_TASK, PriorityOrder, Settings
from tidegate.domain.errors import (
    IdempotencyConflict,
    InvalidJob,
    NeverRunnable,
    QueueClosed,
    QueueFull,
    Refused,
    TidegateError,
    TooLarge,
    UnknownQueue,
)
from tidegate.domain.header import HEADER, JobHeader, WrittenHeader
from tidegate.domain.identity import canonical, uuid7
from tidegate.domain.job import Effect, NewJob, Priority
from tidegate.domain.names import checked_name
from tidegate.domain.priority import from_integer, parse_priority
from tidegate.domain.verdict import Accepted, Closed, Conflict, Duplicate, Full, TooCostly, Verdict
from tidegate.store import Store
from tidegate.transport.binding import nearest
from tidegate.transport.envelope import slim

DEFAULT_TENANT: Final = "default"

#: what workers can read without running foreign code
_CONTENT_TYPES = frozenset(
    {"application/x-tidegate+json", "application/json", "text/plain", "application/data"}
)
#: what is kept of our header in the stored message; the rest lives in the record
_KEPT = ("cost", "schedule", "logical_fire_time")

#: properties that say again what the record or the headers say
_NOT_STORED = ("expiration", "argsrepr", "kwargsrepr")

#: where `put` leaves the job and the store's answer for a caller further up (`tidegate.enqueue`: its receipt)
outbox: ContextVar[list[tuple[NewJob, Verdict]] | None] = ContextVar("tidegate_outbox", default=None)

#: messages are kept here instead of being sent, while `tidegate.enqueue_many` lets Celery build one
captured: ContextVar[list[tuple[str, Mapping[str, Any]]] | None] = ContextVar(
    "tidegate_captured", default=None
)

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def is_task(message: Mapping[str, Any]) -> bool:
    """True for a task's message; replies, events and remote control are not bounded."""
    return "task" in message["headers"]


def put(store: Store, settings: Settings, queue: str, message: Mapping[str, Any]) -> Verdict | None:
    """Enqueue one message, which is left as it is. None if it was only captured.

    Raises UnknownQueue, InvalidJob, TooLarge before anything is sent; QueueFull, QueueClosed, IdempotencyConflict,
    NeverRunnable if the store refuses; StoreUnavailable after fleet.enqueue_timeout.
    """
    if (kept := captured.get()) is not None:
        kept.append((queue, message))
        return None
    job = new_job(settings, queue, message, time.time_ns() // 1_000_000)
    (verdict,) = store.enqueue([job])
    if (told := outbox.get()) is not None:
        told.append((job, verdict))
    if (refusal := refused(verdict, job)) is not None:
        raise refusal
    return verdict


def refused(verdict: Verdict, job: NewJob) -> Refused | None:
    """The error that a verdict means to a producer, or None."""
    match verdict:
        case Full(scope, depth, limit, retry_after):
            return QueueFull(scope, depth, limit, retry_after)
        case Conflict(operation_id):
            return IdempotencyConflict(job.idempotency_key or "", operation_id)
        case Closed(queue):
            return QueueClosed(queue)
        case TooCostly(resource, cost, capacity):
            return NeverRunnable(resource, cost, capacity)
        case Accepted() | Duplicate():
            return None


def new_job(settings: Settings, queue: str, message: Mapping[str, Any], now_ms: int) -> NewJob:
    """The job that a message asks for. now_ms: the producer's clock; only differences to it reach the store.

    Raises UnknownQueue, InvalidJob, TooLarge.
    """
    if not settings.declares(queue):
        raise UnknownQueue(queue, nearest(queue, settings))
    headers = dict(message["headers"])
    properties = dict(message["properties"])
    header = _header(headers.get(HEADER), now_ms)
    name = str(headers.get("task") or "")
    said = settings.task(name)
    delay_ms = _delay(headers.pop("eta", None), now_ms)
    hard, soft = _limits(headers.get("timelimit"))
    attempt = hard or header.attempt_timeout / 1000 or said.timeouts.attempt or DEFAULT_TASK.timeouts.attempt
    queue_timeout_ms = _queue_timeout(
        header.queue_timeout or _finite_ms(said.timeouts.queue),
        headers.pop("expires", None),
        now_ms + delay_ms,
    )
    for again in _NOT_STORED:
        properties.pop(again, None)
    body, properties["body_encoding"] = _body(message, properties.get("body_encoding"))
    said_header = header.as_dict()
    headers |= {
        "eta": None,
        "expires": None,
        "timelimit": [None, soft],
        HEADER: {field: said_header[field] for field in _KEPT if field in said_header},
    }
    return NewJob(
        queue=checked_name(queue, "queue"),
        tenant=checked_name(header.tenant, "tenant"),
        operation_id=checked_name(header.operation_id, "operation_id"),
        envelope=_envelope(message, body, headers, properties, settings.fleet.max_body),
        step=header.step,
        task=name,
        task_id=str(headers.get("id") or properties.get("correlation_id") or ""),
        resources=tuple(checked_name(resource, "resources") for resource in header.resources),
        priority=_priority(header.priority, properties.get("priority"), settings),
        idempotency_key=header.key or None,
        body_hash=body_hash(name, message["body"]) if header.key else "",
        delay_ms=delay_ms,
        queue_timeout_ms=queue_timeout_ms,
        attempt_timeout_ms=_finite_ms(attempt),
        deadline_ms=header.deadline,
        effect=Effect(header.effect) if header.effect else said.effect or Effect.IDEMPOTENT,
        continuation=header.continuation,
        known_operation=header.known,
    )


def instant_ms(text: str, where: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time; without an offset it is UTC. Raises InvalidJob."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidJob(repr(text), where, "an ISO 8601 time") from None
    return math.floor((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def _header(raw: object, now_ms: int) -> JobHeader:
    if isinstance(raw, TidegateError):
        raise raw  # found while the header was made, where Celery's signals would have swallowed it
    if raw is None:
        return JobHeader(tenant=DEFAULT_TENANT, operation_id=uuid7(now_ms, os.urandom(10)))
    return raw.value if isinstance(raw, WrittenHeader) else JobHeader.from_dict(raw)


def _delay(eta: object, now_ms: int) -> int:
    return max(instant_ms(eta, "eta") - now_ms, 0) if isinstance(eta, str) else 0


def _limits(limits: object) -> tuple[float, float | None]:
    """(hard, soft) in seconds; hard 0 means: not said."""
    if not isinstance(limits, list | tuple) or len(limits) != 2:
        return 0, None
    hard, soft = limits
    return (hard if isinstance(hard, int | float) and hard > 0 else 0), soft


def _queue_timeout(own_ms: int, expires: object, waiting_from_ms: int) -> int:
    """The shorter of what was asked and Celery's `expires`, which is an instant: 1 ms if that has passed."""
    if not isinstance(expires, str):
        return own_ms
    left = max(instant_ms(expires, "expires") - waiting_from_ms, 1)
    return min(own_ms, left) if own_ms else left


def _finite_ms(seconds: float | None) -> int:
    """0 for none and for infinity, which the store writes as 0."""
    return max(round(seconds * 1000), 1) if seconds and math.isfinite(seconds) else 0


def _priority(word: str, number: object, settings: Settings) -> Priority:
    amqp = settings.fleet.priority_order is PriorityOrder.AMQP
    if word:
        return parse_priority(word, amqp=amqp)
    return from_integer(number, amqp=amqp) if isinstance(number, int) else Priority.NORMAL


def _body(message: Mapping[str, Any], encoding: Any) -> tuple[str, Any]:
    """The body as text, and its encoding. Ours is text already and stays so; compressed ones become base64."""
    kind = message.get("content-type")
    if kind not in _CONTENT_TYPES:
        raise InvalidJob(f"content type {kind}", "serializer", "tidegate-json, which every worker accepts")
    body = message["body"]
    if isinstance(body, bytes):
        return base64.b64encode(body).decode(), "base64"
    return body, encoding


def _envelope(
    message: Mapping[str, Any], body: str, headers: dict[str, Any], properties: dict[str, Any], limit: int
) -> bytes:
    try:
        envelope = _encode(
            slim({**message, "body": body, "headers": headers, "properties": properties})
        ).encode()
    except (TypeError, ValueError) as error:
        raise InvalidJob(f"not JSON ({error})", "headers", "what JSON can carry") from None
    if len(envelope) > limit:
        raise TooLarge(len(envelope), limit)
    return envelope


def body_hash(task: str, body: Any) -> str:
    """SHA-256 of task and arguments. The embedded callbacks stay out: their ids differ from call to call."""
    try:
        what = canonical([task, json.loads(body)[:2]])
    except (TypeError, ValueError, KeyError):
        what = canonical([task, body if isinstance(body, str) else base64.b64encode(body).decode()])
    return hashlib.sha256(what.encode()).hexdigest()
