"""One job by Celery's own way of sending, so that it looks like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from celery.app.task import Task
from celery.local import maybe_evaluate

from tidegate.client.producer import Producer
from tidegate.client.receipt import Receipt, receipt
from tidegate.client.request import Call
from tidegate.domain.errors import InvalidJob, UnknownQueue
from tidegate.domain.job import NewJob
from tidegate.domain.verdict import Accepted, Duplicate, Verdict
from tidegate.transport.binding import nearest
from tidegate.transport.publish import captured, outbox
from tidegate.worker.said import duration_ms


def send(sender: Producer, asked: Call[Any]) -> Receipt[Any]:
    """`enqueue` through a given app."""
    check_arguments(asked.task, asked.args, asked.kwargs)
    told: list[tuple[NewJob, Verdict]] = []
    token = outbox.set(told)
    try:
        result = _publish(sender, asked)
    finally:
        outbox.reset(token)
    if not told:  # task_always_eager: Celery has run it here
        return Receipt(result.id, result.id, "accepted", "green", _producer=sender, _eager=result)
    job, verdict = told[-1]
    assert isinstance(verdict, Accepted | Duplicate), "the transport raises all others"
    return receipt(job, verdict, sender)


def capture(sender: Producer, asked: Call[Any], **more: Any) -> tuple[str, Mapping[str, Any]]:
    """The queue and the message that Celery makes of a call; nothing is sent. more: further options of Celery."""
    kept: list[tuple[str, Mapping[str, Any]]] = []
    token = captured.set(kept)
    try:
        _publish(sender, asked, **more)
    finally:
        captured.reset(token)
    if not kept:
        raise InvalidJob(
            "on: Celery runs tasks here and sends none", "task_always_eager", "off for enqueue_many"
        )
    return kept[-1]


def check_arguments(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Compare the arguments with the signature of a task object, as `apply_async` does. Raises InvalidJob."""
    if isinstance(task, str):
        return
    task = maybe_evaluate(task)
    if isinstance(task, Task) and task.typing and (header := getattr(task, "__header__", None)):
        try:
            header(*args, **kwargs)
        except TypeError as error:
            raise InvalidJob(str(error), "args", f"the arguments that {task.name} takes") from None


def _publish(sender: Producer, asked: Call[Any], **more: Any) -> Any:
    options: dict[str, Any] = {**asked.options, **more}
    queue = options.get("queue")
    if queue is not None and not sender.settings.declares(queue):
        raise UnknownQueue(queue, nearest(queue, sender.settings))
    if (delay := options.pop("delay", None)) is not None:
        options["countdown"] = duration_ms(delay, "delay") / 1000
    if (eta := options.get("eta")) is not None and getattr(eta, "tzinfo", None) is None:
        raise InvalidJob(repr(eta), "eta", "a datetime with a zone")
    task, args, kwargs = asked.task, tuple(asked.args), dict(asked.kwargs)
    if isinstance(task, str):
        return sender.app.send_task(asked.name, args, kwargs, **options)
    # a @shared_task has one object per app
    own = sender.app.tasks.get(asked.name)
    if own is not None:
        return own.apply_async(args, kwargs, **options)
    return sender.app.send_task(asked.name, args, kwargs, task_type=maybe_evaluate(task), **options)
