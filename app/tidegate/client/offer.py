"""`enqueue` and `enqueue_many`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack, cast, overload

from tidegate.client import bulk
from tidegate.client.one import send
from tidegate.client.producer import producer
from tidegate.client.receipt import Receipt
from tidegate.client.request import Call, Options, P, R, TaskLike, checked_options
from tidegate.domain.errors import TidegateError


@overload
def enqueue(task: Call[R], **options: Unpack[Options]) -> Receipt[R]: ...
@overload
def enqueue(
    task: str, args: Sequence[Any] = ..., kwargs: Mapping[str, Any] | None = ..., **options: Unpack[Options]
) -> Receipt[Any]: ...
@overload
def enqueue(
    task: TaskLike[P, R],
    args: Sequence[Any] = ...,
    kwargs: Mapping[str, Any] | None = ...,
    **options: Unpack[Options],
) -> Receipt[R]: ...
def enqueue(
    task: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Unpack[Options],
) -> Receipt[Any]:
    """Offer one job to the fleet and say what the store answered.

    task: a task object, its name, or `call(task, ...)`. options: see `Options`.

    Raises QueueFull, QueueClosed, IdempotencyConflict, NeverRunnable (the store refused); InvalidJob, UnknownQueue,
    TooLarge (nothing was sent); StoreUnavailable after fleet.enqueue_timeout; ConfigError if this process has no usable
    settings.
    """
    asked = task.using(**options) if isinstance(task, Call) else Call(task, args, kwargs or {}, options)
    return send(producer(), asked)


def enqueue_many(
    calls: Iterable[Call[Any]], **options: Unpack[Options]
) -> list[Receipt[Any] | TidegateError]:
    """Offer many jobs in few round trips; each gets its own receipt or its own error, in order.

    options: for every call that does not say so itself. A job is refused as `enqueue` would refuse it, but its error
    is an item of the list. Signals of Celery (`before_task_publish`) are not sent, except to receivers of your own.

    Raises InvalidJob for wrong `options`, and ConfigError.
    """
    checked_options(options)
    asked = [
        Call(one.task, one.args, one.kwargs, cast("Options", {**options, **one.options})) for one in calls
    ]
    return bulk.send_many(producer(), asked)
