"""Gives every publish of an app its identity, by a receiver of `before_task_publish`; what it says: identify.py."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from types import MethodType
from typing import Any

from celery import Celery
from celery.signals import before_task_publish

from tidegate.config import PriorityOrder, Settings, TaskSettings
from tidegate.domain.errors import TidegateError
from tidegate.domain.header import HEADER
from tidegate.domain.identity import keyed_task_id, operation_task_id
from tidegate.transport.publish import DEFAULT_TENANT
from tidegate.worker import canvas, serializer
from tidegate.worker.context import ambient
from tidegate.worker.identify import identify, inherited, stamped
from tidegate.worker.policy import overruled, policy
from tidegate.worker.said import NAMES, NOTHING, Said
from tidegate.worker.shown import LEVELS, shown

_RECEIVER = "tidegate.identity"

#: headers that a fixed task id follows from
_FIXING = frozenset({"tenant", "idempotency_key", "operation_id"})
#: options that lead past the queues of the settings
_ROUTED = ("exchange", "exchange_type", "routing_key", "declare")
#: options that make a job a step of a canvas
_CANVAS = ("group_id", "chord", "chain", "link", "link_error")


@dataclass(slots=True, eq=False)
class Attachment:
    """An app whose publishes get an identity."""

    app: Celery
    settings: Settings
    amqp: bool
    _shows: bool | None = None
    _policies: dict[tuple[str, int], TaskSettings] = field(default_factory=dict)

    @property
    def shows(self) -> bool:
        """Whether `shown` may speak for Celery, which has a setting about it; asked once."""
        if self._shows is None:
            self._shows = self.app.conf.task_repr_maxlevels == LEVELS
        return self._shows

    def policy(self, name: str, task: Any) -> TaskSettings:
        """What the file and the task say, read once."""
        place = (name, id(task))
        found = self._policies.get(place)
        if found is None:
            found = self._policies[place] = policy(self.settings, name, task)
        return found


@dataclass(frozen=True, slots=True)
class Sending:
    """One call of `send_task` that is under way: what its publish cannot see in the message."""

    to: Attachment
    task: Any = None  #: the Celery task object, if the caller had one
    said: Said = NOTHING  #: Tidegate's words among the options


_sending: ContextVar[Sending | None] = ContextVar("tidegate_sending", default=None)
_attached: list[Attachment] = []


def attach(app: Celery, settings: Settings) -> None:
    """Give every publish of `app` an identity: wraps its `send_task`, listens to `before_task_publish`.

    Again with the same app replaces the settings. Part of install(); the serializer is registered as well.
    """
    serializer.register()
    before_task_publish.connect(_on_publish, weak=False, dispatch_uid=_RECEIVER)
    to = Attachment(app, settings, settings.fleet.priority_order is PriorityOrder.AMQP)
    _attached[:] = [known for known in _attached if known.app is not app] + [to]
    # Every way of sending ends in this method of the app: delay, apply_async, canvas, callbacks, replace, beat.
    app.send_task = MethodType(_send_task(to), app)


def detach(app: Celery) -> None:
    """Undo `attach`: for processes that make many apps, such as test suites."""
    _attached[:] = [known for known in _attached if known.app is not app]
    app.__dict__.pop("send_task", None)


def attached() -> tuple[Attachment, ...]:
    """The apps of this process that publish through Tidegate, the latest last."""
    return tuple(_attached)


def listeners() -> int:
    """Receivers of `before_task_publish` besides ours."""
    return sum(1 for key, _ in before_task_publish.receivers or () if key[0] != _RECEIVER)


def _send_task(to: Attachment) -> Callable[..., Any]:
    def send_task(
        self: Celery, name: str, args: Any = None, kwargs: Any = None, *rest: Any, **options: Any
    ) -> Any:
        token = _sending.set(_prepare(to, name, args, kwargs, options))
        try:
            # looked up at each call: instrumentation may have wrapped the method of the class meanwhile
            return type(self).send_task(self, name, args, kwargs, *rest, **options)
        finally:
            _sending.reset(token)

    return send_task


def _prepare(to: Attachment, name: str, args: Any, kwargs: Any, options: dict[str, Any]) -> Sending:
    """Takes Tidegate's words out of the options of `send_task`, and puts in what follows from them."""
    now_ms = time.time_ns() // 1_000_000
    task = options.get("task_type") or getattr(to.app, "_tasks", {}).get(name)
    call = _own_words(to, options, now_ms)
    if not options.get("task_id"):
        _fix_task_id(to, name, call, options, now_ms)
    said = to.policy(name, task)
    if said.queue and not any(options.get(word) for word in ("queue", "exchange", "routing_key")):
        options["queue"] = said.queue
    if task is not None:
        options |= overruled(said, task, options)
    if to.shows:
        for option, value in (("argsrepr", args or ()), ("kwargsrepr", kwargs or {})):
            if options.get(option) is None and (text := shown(value)) is not None:
                options[option] = text
    if isinstance(options.get("queue") or "", str) and not any(options.get(word) for word in _ROUTED):
        options[
            "declare"
        ] = ()  # a queue of jobs is declared in the settings; kombu would copy and bind it each time
    return Sending(to, task, call)


def _own_words(to: Attachment, options: dict[str, Any], now_ms: int) -> Said:
    names = NAMES & options.keys()
    if not names:
        return NOTHING
    names -= set(options.get("stamped_headers") or ())  # Celery wants those back from the options
    if isinstance(options.get("priority"), int):
        names -= {"priority"}  # Celery's own option too, and an integer stays where Celery expects it
    return Said.read({name: options.pop(name) for name in names}, now_ms, amqp=to.amqp)


def _fix_task_id(to: Attachment, name: str, call: Said, options: dict[str, Any], now_ms: int) -> None:
    """A send that the store may know already must have the task id it had then; set here, because Celery makes the
    caller's AsyncResult of it."""
    headers = options.get("headers")
    if headers and (words := _FIXING & headers.keys()):
        call = call.over(Said.read({word: headers[word] for word in words}, now_ms))
    fleet = to.settings.fleet.name
    if call.idempotency_key:
        tenant = (
            call.tenant or ambient().tenant or inherited(_running(to.app)).get("tenant") or DEFAULT_TENANT
        )
        options["task_id"] = keyed_task_id(fleet, tenant, name, call.idempotency_key)
    elif call.operation_id and not any(options.get(word) for word in _CANVAS):
        options["task_id"] = operation_task_id(fleet, call.operation_id)


def _on_publish(body: Any = None, headers: Any = None, **_: Any) -> None:
    """Receiver of `before_task_publish`. Celery swallows what a receiver raises, so an error travels as the header:
    the transport raises it, and nothing is sent."""
    sending = _sending.get()
    if sending is None:
        if len(_attached) != 1:
            return  # sent past `send_task`, and no way to tell for which app: the transport gives the defaults
        sending = Sending(_attached[0])
    to, now_ms = sending.to, time.time_ns() // 1_000_000
    try:
        if isinstance(body, tuple) and len(body) == 3 and headers.get("id"):
            canvas.freeze_callbacks(body[2], headers["id"])
        header = identify(
            fleet=to.settings.fleet.name,
            call=sending.said.over(Said.read(headers, now_ms, amqp=to.amqp)).over(stamped(headers, now_ms)),
            around=ambient(),
            task=to.policy(str(headers.get("task") or ""), sending.task),
            headers=headers,
            body=body,
            running=_running(to.app),
            now_ms=now_ms,
            chance=os.urandom(10),
        )
    except TidegateError as error:
        headers[HEADER] = error
        return
    for name in NAMES & headers.keys():
        if name != "tenant":  # tasks read `request.tenant`
            del headers[name]
    if isinstance(eta := headers.get("eta"), str):
        headers["eta"] = _with_zone(eta, to.app)
    headers[HEADER] = header.written()


def _running(app: Celery) -> Any:
    """Celery's context of the task that runs here, or None."""
    task = app.current_worker_task
    return task.request if task else None


def _with_zone(eta: str, app: Celery) -> str:
    """A naive eta is in the app's time zone, which the transport does not know."""
    try:
        when = datetime.fromisoformat(eta)
    except ValueError:
        return eta  # the transport says what is wrong with it
    return eta if when.tzinfo else when.replace(tzinfo=app.timezone).isoformat()
