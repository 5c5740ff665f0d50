"""Many jobs in few round trips.

Celery builds one message of each kind (task and options), a *mould*; the messages of the other calls differ from it
only in ids, arguments and how those look in logs, and are cast from it by filling in these texts. So every option,
route and header is Celery's own work, at a fraction of its price. Where Celery would look at each single call
(receivers of its signals, routers that are functions, tasks with their own `apply_async`), it gets to.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from celery.app.task import Task
from celery.signals import after_task_publish, task_sent
from celery.utils.saferepr import saferepr

from tidegate.client.one import capture, check_arguments
from tidegate.client.producer import Producer
from tidegate.client.receipt import Receipt, receipt
from tidegate.client.request import Call
from tidegate.domain.errors import InvalidJob, StoreUnavailable, TidegateError, TooLarge
from tidegate.domain.identity import key_text, keyed_task_id, operation_task_id, uuid7
from tidegate.domain.job import NewJob
from tidegate.domain.names import checked_name
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.transport.publish import body_hash, new_job, refused
from tidegate.worker.identity import listeners
from tidegate.worker.serializer import CONTENT_TYPE, encode
from tidegate.worker.shown import LEVELS, shown

#: calls that are built, then offered together: eight scripts of a hundred
CHUNK = 800

#: options that name one single job; a mould has none of them
_SINGLE = ("idempotency_key", "operation_id")

Answer = Receipt[Any] | TidegateError
_quote = json.JSONEncoder(ensure_ascii=False).encode


def send_many(sender: Producer, asked: Sequence[Call[Any]]) -> list[Answer]:
    """One answer per call, in order. After the store was silent once, the rest is not tried."""
    answers: list[Answer] = []
    silent: StoreUnavailable | None = None
    for start in range(0, len(asked), CHUNK):
        chunk = asked[start : start + CHUNK]
        if silent is None:
            more, silent = _send_chunk(sender, chunk)
            answers += more
        else:
            answers += [StoreUnavailable(silent.url, silent.reason)] * len(chunk)
    return answers


def _send_chunk(sender: Producer, chunk: Sequence[Call[Any]]) -> tuple[list[Answer], StoreUnavailable | None]:
    try:
        store = sender.fleet.store
    except StoreUnavailable as error:
        return [error] * len(chunk), error
    foundry = Foundry(sender)
    made: list[NewJob | TidegateError] = []
    for one in chunk:
        try:
            made.append(foundry.job(one))
        except TidegateError as error:
            made.append(error)
    jobs = [job for job in made if isinstance(job, NewJob)]
    try:
        verdicts = iter(store.enqueue(jobs) if jobs else ())
    except StoreUnavailable as error:
        return [item if isinstance(item, TidegateError) else error for item in made], error
    answers: list[Answer] = []
    for item in made:
        if isinstance(item, TidegateError):
            answers.append(item)
            continue
        verdict = next(verdicts)
        if isinstance(verdict, Accepted | Duplicate):
            answers.append(receipt(item, verdict, sender))
        else:
            answers.append(refused(verdict, item) or InvalidJob(repr(verdict), "verdict", "a known answer"))
    return answers, None


class Foundry:
    """Makes the jobs of one chunk."""

    def __init__(self, sender: Producer) -> None:
        self._sender = sender
        self._routed_one_by_one = _looks_at_each_call(sender)
        self._moulds: dict[str, Mould | None] = {}
        self._last: tuple[Any, Any, Mould | None] = (None, None, None)

    def job(self, one: Call[Any]) -> NewJob:
        """The job of one call, as Celery's own way of sending would make it. Raises what `enqueue` raises."""
        check_arguments(one.task, one.args, one.kwargs)
        mould = self._mould(one)
        if mould is None:
            queue, message = capture(self._sender, one)
            return new_job(self._sender.settings, queue, message, _now_ms())
        return mould.cast(one)

    def _mould(self, one: Call[Any]) -> Mould | None:
        task, options, mould = self._last
        if one.task is task and one.options == options:
            return mould
        place = repr(
            (
                one.name,
                0 if isinstance(one.task, str) else id(one.task),
                sorted((k, v if k not in _SINGLE else True) for k, v in one.options.items()),
            )
        )
        if place not in self._moulds:
            alone = self._routed_one_by_one or _is_peculiar(self._sender, one)
            self._moulds[place] = None if alone else Mould(self._sender, one)
        mould = self._moulds[place]
        self._last = (one.task, one.options, mould)
        return mould


class Mould:
    """One message, and the places where the next one differs."""

    def __init__(self, sender: Producer, one: Call[Any]) -> None:
        self._fleet = sender.settings.fleet
        self._app = sender.app
        self._shows = sender.app.conf.task_repr_maxlevels == LEVELS
        self._named = "operation_id" in one.options
        task_id, operation_id, args, kwargs, body = (str(uuid4()) for _ in range(5))
        options = {name: value for name, value in one.options.items() if name not in _SINGLE}
        if self._named:
            options["operation_id"] = operation_id
        plain = Call(one.task, one.args, one.kwargs, options)  # type: ignore[arg-type]
        queue, message = capture(sender, plain, task_id=task_id, argsrepr=args, kwargsrepr=kwargs)
        self._tail = _embedded(message)
        self._job = job = new_job(sender.settings, queue, {**message, "body": body}, _now_ms())
        self._own_step = job.step == task_id
        #: an operation that the context or the running task gives is the same for all
        self._own_operation = self._named or not self._own_step
        # the operation's id stands in the record alone
        self._parts = _split(job.envelope.decode(), {task_id: 0, args: 1, kwargs: 2, body: 3})

    def cast(self, one: Call[Any]) -> NewJob:
        """The job of another call with the same task and options."""
        job, said = self._job, one.options
        args, kwargs = tuple(one.args), dict(one.kwargs)
        key = key_text(said["idempotency_key"]) if said.get("idempotency_key") is not None else None
        operation_id, task_id = job.operation_id, ""
        if self._named:
            operation_id = checked_name(said["operation_id"], "operation_id")
            task_id = operation_task_id(self._fleet.name, operation_id)
        elif self._own_operation:
            operation_id = uuid7(_now_ms(), os.urandom(10))
        if key:
            task_id = keyed_task_id(self._fleet.name, job.tenant, job.task, key)
        task_id = task_id or str(uuid4())
        body = encode((args, kwargs, self._tail))
        texts = (task_id, self._shown(args), self._shown(kwargs), body)
        quoted = [_quote(text)[1:-1] for text in texts]
        envelope = "".join([part if isinstance(part, str) else quoted[part] for part in self._parts]).encode()
        if len(envelope) > self._fleet.max_body:
            raise TooLarge(len(envelope), self._fleet.max_body)
        return NewJob(
            queue=job.queue,
            tenant=job.tenant,
            operation_id=operation_id,
            envelope=envelope,
            step=task_id if self._own_step else job.step,
            task=job.task,
            task_id=task_id,
            resources=job.resources,
            costs=job.costs,
            priority=job.priority,
            idempotency_key=key,
            body_hash=body_hash(job.task, body) if key else "",
            delay_ms=job.delay_ms,
            queue_timeout_ms=job.queue_timeout_ms,
            attempt_timeout_ms=job.attempt_timeout_ms,
            deadline_ms=job.deadline_ms,
            effect=job.effect,
            continuation=job.continuation,
            known_operation=job.known_operation,
        )

    def _shown(self, value: Any) -> str:
        if self._shows and (text := shown(value)) is not None:
            return text
        amqp, conf = self._app.amqp, self._app.conf
        limit = amqp.argsrepr_maxsize if isinstance(value, tuple) else amqp.kwargsrepr_maxsize
        return str(saferepr(value, limit, maxlevels=conf.task_repr_maxlevels))


def _embedded(message: Any) -> Any:
    """The third part of the body, which holds callbacks; a mould has none, but says so in Celery's words."""
    if message["content-type"] != CONTENT_TYPE:
        raise InvalidJob(f"content type {message['content-type']}", "serializer", "tidegate-json")
    return json.loads(message["body"])[2]


def _split(text: str, places: dict[str, int]) -> list[str | int]:
    """`text` in pieces; an index stands where one of `places` stood."""
    parts: list[str | int] = [text]
    for mark, index in places.items():
        next_parts: list[str | int] = []
        for part in parts:
            if isinstance(part, int):
                next_parts.append(part)
                continue
            for number, piece in enumerate(part.split(mark)):
                next_parts += [index, piece] if number else [piece]
        parts = next_parts
    return parts


def _looks_at_each_call(sender: Producer) -> bool:
    """True if somebody else wants to see each message while Celery makes it."""
    if listeners() or after_task_publish.receivers or task_sent.receivers:
        return True
    routes = sender.app.conf.task_routes
    tables = routes if isinstance(routes, list | tuple) else [routes]
    return any(table is not None and not isinstance(table, dict) for table in tables)


def _is_peculiar(sender: Producer, one: Call[Any]) -> bool:
    """True for tasks that make their messages in their own way."""
    task = one.task if not isinstance(one.task, str) else getattr(sender.app, "_tasks", {}).get(one.name)
    if not isinstance(task, Task):
        return False
    kind = task.__class__  # not type(): a task of a lazy app is a proxy
    return (
        kind.apply_async is not Task.apply_async
        or kind.shadow_name is not Task.shadow_name
        or task.serializer != sender.app.conf.task_serializer
        or bool(getattr(task, "compression", None))
        or getattr(task, "_dump_pydantic_arguments", None) is not None
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
