"""The task that writes the result of a dead job: FAILURE, its errbacks, its chord and the rest of its chain.

All of that may be the user's code, so it runs in a worker. Celery's own `mark_as_failure` does it, for a request that
is rebuilt from the stored message and is no attempt (backend.py).
"""

from __future__ import annotations

import builtins
import importlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from celery import Celery
from celery.app.task import Context
from celery.utils.serialization import create_exception_cls

from tidegate.domain.errors import JobDead
from tidegate.domain.finalize import TASK
from tidegate.domain.header import HEADER
from tidegate.domain.job import JobView
from tidegate.domain.states import State
from tidegate.transport.binding import OPTION, binding
from tidegate.transport.delivery import Undeliverable, decode
from tidegate.worker import serializer

logger = logging.getLogger(__name__)


def register(app: Celery) -> None:
    """Give the app the task; again is harmless."""
    if TASK in app._tasks:
        return

    def finalize(operation_id: str, step: str = "", generation: int = 0) -> None:
        write_result(app, operation_id, step, generation)

    app.task(finalize, name=TASK, ignore_result=True, shared=False)


def write_result(app: Celery, operation_id: str, step: str, generation: int = 0) -> None:
    """Write the result of that death, unless the job was replayed meanwhile.

    One replayed between this look and the write gets a FAILURE that its own end overwrites; the backend itself never
    writes over a SUCCESS.
    """
    view = binding(app.conf.broker_transport_options[OPTION]).store.job(operation_id, step)
    if view is None or view.state is not State.DEAD or view.generation != generation or not view.task_id:
        return
    detail: dict[str, Any] = json.loads(view.detail or "{}")
    try:
        request = rebuilt(decode(view.envelope))
    except (Undeliverable, ValueError, TypeError) as error:
        logger.warning(
            "job %s of %s cannot be read (%s): its errbacks are not called", view.job_id, operation_id, error
        )
        request = Context({"id": view.task_id, "task": view.task})
    app.backend.mark_as_failure(
        view.task_id,
        death(view, detail),
        traceback=detail.get("traceback"),
        request=request,
        store_result=not request.ignore_result,
    )


def rebuilt(message: Mapping[str, Any]) -> Context:
    """Celery's context of the job that a message carries, without its header: it is no attempt."""
    args, kwargs, embed = serializer.decode(message["body"])
    headers = {name: value for name, value in message["headers"].items() if name != HEADER}
    properties = message["properties"]
    return Context(
        headers,
        args=args,
        kwargs=kwargs,
        correlation_id=properties.get("correlation_id"),
        reply_to=properties.get("reply_to"),
        delivery_info={},
        called_directly=False,
        **embed,
    )


def death(view: JobView, detail: Mapping[str, Any]) -> BaseException:
    """The exception that a caller's `get()` raises: that of the last attempt, or JobDead where no body raised one."""
    name, text = detail.get("class"), str(detail.get("message", ""))
    if not isinstance(name, str):
        return JobDead(
            f"{view.task or 'the job'} of operation {view.operation_id} is a dead letter: {view.reason}"
        )
    module, _, kind = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module) if module else builtins, kind)
        error = found(text)
    except Exception:  # noqa: BLE001 - a class of the user, whose constructor may want anything
        error = None
    if isinstance(error, BaseException):
        return error
    made: BaseException = create_exception_cls(kind, module or "builtins")(text)
    return made
