"""Whose job is it? Answered at every publish of every process, by a receiver of `before_task_publish`.

Sources, first one wins: the call itself (option or header), `tidegate.context(...)`, the running task that publishes
(tenant, operation and deadline are inherited, an idempotency key never is), the default tenant.

A publish from inside a running task is the *continuation* of an admitted canvas if the running task carries its id
(next step of a chain, callback, chord body) or if it replaces the task; the store never refuses those and knows them
again. Everything else that a task sends is an ordinary publish: Celery gives every one of them a `parent_id`, so
that is no sign.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from types import MethodType
from typing import Any

from celery import Celery
from celery.signals import before_task_publish

from tidegate.config import PriorityOrder, Settings
from tidegate.domain.errors import TidegateError
from tidegate.domain.header import HEADER, JobHeader
from tidegate.domain.identity import group_operation_id, keyed_task_id, step_of, uuid7
from tidegate.transport.publish import DEFAULT_TENANT
from tidegate.worker import canvas, serializer
from tidegate.worker.context import ambient
from tidegate.worker.policy import overruled, policy
from tidegate.worker.said import NAMES, Said

_NOTHING = Said()


@dataclass(frozen=True, slots=True)
class Sending:
    """One call of `send_task` that is under way: what its publish cannot see in the message."""

    app: Celery
    settings: Settings
    task: Any = None  #: the Celery task object, if the caller had one
    said: Said = _NOTHING  #: Tidegate's words among the options


_sending: ContextVar[Sending | None] = ContextVar("tidegate_sending", default=None)
_attached: list[tuple[Celery, Settings]] = []


def attach(app: Celery, settings: Settings) -> None:
    """Give every publish of `app` an identity: wraps its `send_task`, listens to `before_task_publish`.

    Again with the same app replaces the settings. Part of install(); the serializer is registered as well.
    """
    serializer.register()
    before_task_publish.connect(_on_publish, weak=False, dispatch_uid="tidegate.identity")
    _attached[:] = [pair for pair in _attached if pair[0] is not app] + [(app, settings)]

    def send_task(
        self: Celery, name: str, args: Any = None, kwargs: Any = None, *rest: Any, **options: Any
    ) -> Any:
        sending, options = _prepared(self, settings, name, options)
        token = _sending.set(sending)
        try:
            # looked up at each call: instrumentation may have wrapped the method of the class meanwhile
            return type(self).send_task(self, name, args, kwargs, *rest, **options)
        finally:
            _sending.reset(token)

    # Every way of sending ends in this method of the app: delay, apply_async, canvas, callbacks, replace, beat.
    app.send_task = MethodType(send_task, app)


def attached() -> tuple[tuple[Celery, Settings], ...]:
    """The apps of this process that publish through Tidegate, the latest last."""
    return tuple(_attached)


def identify(
    sending: Sending, body: Any, headers: Mapping[str, Any], now_ms: int, chance: bytes, running: Any = None
) -> JobHeader:
    """The header of one message. `running` is the Celery context of the task that publishes it, if any does.

    Raises InvalidJob.
    """
    settings = sending.settings
    amqp = settings.fleet.priority_order is PriorityOrder.AMQP
    call = sending.said.over(Said.read(headers, now_ms, amqp=amqp)).over(_stamps(headers, now_ms))
    around = ambient()
    parent = getattr(running, HEADER, None) if running is not None else None
    parent = parent if isinstance(parent, Mapping) else {}
    embed = body[2] if isinstance(body, tuple) and len(body) == 3 else {}
    task_id, nesting = str(headers.get("id") or ""), int(headers.get("replaced_task_nesting") or 0)
    operation_id, step = _operation(
        settings, call, around, parent, embed, headers, step_of(task_id, nesting), now_ms, chance
    )
    inherits = operation_id == parent.get("operation_id")
    said = policy(settings, str(headers.get("task") or ""), sending.task)
    queue_timeout = call.queue_timeout or around.queue_timeout
    if queue_timeout is None and not headers.get("expires"):
        queue_timeout = _milliseconds(said.timeouts.queue)
    return JobHeader(
        tenant=call.tenant or around.tenant or parent.get("tenant") or DEFAULT_TENANT,
        operation_id=operation_id,
        step=step,
        deadline=_earliest(call.deadline or around.deadline, parent.get("deadline") if inherits else None),
        queue_timeout=queue_timeout or 0,
        attempt_timeout=_milliseconds(said.timeouts.attempt) or 0,
        priority=call.priority or around.priority or "",
        key=call.idempotency_key or "",
        effect=said.effect.value if said.effect else "",
        resources=call.resources or (),
        cost=call.cost,
        continuation=running is not None and _continues(running, task_id, nesting),
        known=call.operation_id is not None,
    )


def _operation(
    settings: Settings,
    call: Said,
    around: Said,
    parent: Mapping[str, Any],
    embed: Mapping[str, Any],
    headers: Mapping[str, Any],
    step: str,
    now_ms: int,
    chance: bytes,
) -> tuple[str, str]:
    """(operation id, step). Only a lone job in an operation of its own has the empty step."""
    group = canvas.outermost_group(headers.get("group"), embed)
    lone = group is None and not canvas.is_canvas(embed)
    if call.operation_id:
        return call.operation_id, "" if lone else step
    inherited = around.operation_id or parent.get("operation_id")
    if inherited:
        return str(inherited), step
    if group is not None:
        return group_operation_id(settings.fleet.name, group), step
    return uuid7(now_ms, chance), "" if lone else step


def _continues(running: Any, task_id: str, nesting: int) -> bool:
    replaces = nesting > int(getattr(running, "replaced_task_nesting", 0) or 0)
    return replaces or task_id in canvas.frozen_ids(running)


def _prepared(
    app: Celery, settings: Settings, name: str, options: dict[str, Any]
) -> tuple[Sending, dict[str, Any]]:
    """Tidegate's words taken out of the options of `send_task`, and what follows from them put in."""
    now_ms = time.time_ns() // 1_000_000
    task = options.get("task_type") or getattr(app, "_tasks", {}).get(name)
    stamps = set(options.get("stamped_headers") or ())  # Celery wants those back from the options
    own = {
        word: options.pop(word)
        for word in NAMES & options.keys() - stamps
        if not _is_celerys(word, options[word])
    }
    said = Said.read(own, now_ms, amqp=settings.fleet.priority_order is PriorityOrder.AMQP)
    headers = options.get("headers") or {}
    key = said.over(Said.read({"idempotency_key": headers.get("idempotency_key")}, now_ms)).idempotency_key
    if key and not options.get("task_id"):
        tenant = said.over(Said.read({"tenant": headers.get("tenant")}, now_ms)).over(ambient()).tenant
        options["task_id"] = keyed_task_id(settings.fleet.name, tenant or _inherited(app), name, key)
    if task is not None:
        options |= overruled(policy(settings, name, task), task, options)
    return Sending(app, settings, task, said), options


def _is_celerys(word: str, value: object) -> bool:
    """`priority` is Celery's own option too; as an integer it stays where Celery expects it."""
    return word == "priority" and (value is None or (isinstance(value, int) and not isinstance(value, bool)))


def _inherited(app: Celery) -> str:
    running = app.current_worker_task
    parent = getattr(running.request, HEADER, None) if running else None
    return str(parent.get("tenant") or DEFAULT_TENANT) if isinstance(parent, Mapping) else DEFAULT_TENANT


def _on_publish(body: Any = None, headers: Any = None, **_: Any) -> None:
    """Receiver of `before_task_publish`. Celery swallows what a receiver raises, so an error travels as the header:
    the transport raises it, and nothing is sent."""
    sending = _sending.get()
    if sending is None:
        if len(_attached) != 1:
            return  # sent past `send_task`, and no way to tell for which app: the transport gives the defaults
        sending = Sending(*_attached[0])
    running = sending.app.current_worker_task
    now_ms = time.time_ns() // 1_000_000
    try:
        if isinstance(body, tuple) and len(body) == 3 and headers.get("id"):
            canvas.freeze_callbacks(body[2], headers["id"])
        header = identify(
            sending, body, headers, now_ms, os.urandom(10), running.request if running else None
        )
    except TidegateError as error:
        headers[HEADER] = error
        return
    for name in NAMES - {"tenant"}:
        headers.pop(name, None)
    if isinstance(eta := headers.get("eta"), str):
        headers["eta"] = _with_zone(eta, sending.app)
    headers[HEADER] = header.as_dict()


def _with_zone(eta: str, app: Celery) -> str:
    """A naive eta is in the app's time zone, which the transport does not know."""
    try:
        when = datetime.fromisoformat(eta)
    except ValueError:
        return eta  # the transport says what is wrong with it
    return eta if when.tzinfo else when.replace(tzinfo=app.timezone).isoformat()


def _stamps(headers: Mapping[str, Any], now_ms: int) -> Said:
    """`sig.stamp(tenant=...)`: Celery makes a list of one of each value."""
    stamps = headers.get("stamps")
    if not isinstance(stamps, Mapping) or not stamps:
        return _NOTHING
    single = {
        name: value[0] if isinstance(value, list) and value else value for name, value in stamps.items()
    }
    return Said.read({name: single.get(name) for name in ("tenant", "operation_id", "deadline")}, now_ms)


def _earliest(*instants: int | None) -> int:
    return min((instant for instant in instants if instant), default=0)


def _milliseconds(seconds: float | None) -> int | None:
    """None for none and for infinity."""
    return round(seconds * 1000) if seconds and seconds != float("inf") else None
