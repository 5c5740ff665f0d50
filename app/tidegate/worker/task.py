"""Making any Celery task of an app run as attempts of Tidegate, whatever its base class is and whenever it was made.

A base class given to `Celery(task_cls=)` reaches neither tasks with `base=` nor those made before `install()`. Task
objects are singletons of their app, so each one is adopted by attributes of its own.
"""

from __future__ import annotations

import functools
from datetime import datetime
from types import MethodType
from typing import Any

from celery import Celery, Task
from celery.exceptions import Retry
from celery.utils.imports import symbol_by_name

from tidegate.domain.errors import TidegateError
from tidegate.worker.ends import attempt_ref
from tidegate.worker.request import FleetRequest


class RetryWithChanges(TidegateError):
    """`self.retry(args=..., kwargs=...)`: a retry is the same message again."""

    code = "retry_with_changes"
    fields = ("task",)

    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(
            f"{task}: retry() with other arguments is not supported, because a retry is the same job again; "
            "publish another job with them instead"
        )


def adopt_all(app: Celery) -> None:
    """Adopt every task that the app knows now. Harmless to repeat."""
    for task in app._tasks.values():
        adopt(task)


def adopt(task: Task) -> None:
    """Force what leases need on one task. Its own word about `acks_late` is kept for its effect (DESIGN §11)."""
    if "_tidegate_adopted" in task.__dict__:
        return
    task._tidegate_adopted = True
    # install() has set the default to True, so False is what the task itself says
    task._tidegate_acks_early = task.acks_late is False
    task.acks_late = True  # else it would be reported as done when it starts
    task.acks_on_failure = task.acks_on_timeout = True
    task.reject_on_worker_lost = task.retry_on_worker_lost = (
        False  # both would publish behind the authority's back
    )
    task.Request = _request_class(task.Request)
    task.retry = MethodType(_retry, task)


def _request_class(wanted: Any) -> type[FleetRequest]:
    return _combined(symbol_by_name(wanted))


@functools.cache
def _combined(wanted: type) -> type[FleetRequest]:
    """FleetRequest, on top of a task's own request class if it has one."""
    if issubclass(FleetRequest, wanted):
        return FleetRequest
    if issubclass(wanted, FleetRequest):
        return wanted
    return type(f"Fleet{wanted.__name__}", (FleetRequest, wanted), {"__module__": wanted.__module__})


def _retry(
    self: Task,
    args: Any = None,
    kwargs: Any = None,
    exc: BaseException | None = None,
    throw: bool = True,
    eta: datetime | None = None,
    countdown: float | None = None,
    max_retries: int | None = None,
    **options: Any,
) -> Any:
    """Task.retry for attempts: end this one and say when the task would like the next; publishes nothing.

    Always raises, also with `throw=False`: the attempt is over, and going on would end it a second time. Whether
    there is a next attempt is the authority's decision. Outside a worker it is Celery's own.
    """
    if attempt_ref(self.request) is None or self.request.is_eager:
        return type(self).retry(
            self,
            args,
            kwargs,
            exc=exc,
            throw=throw,
            eta=eta,
            countdown=countdown,
            max_retries=max_retries,
            **options,
        )
    if _changed(args, self.request.args) or _changed(kwargs, self.request.kwargs):
        raise RetryWithChanges(self.name)
    raise Retry(exc=exc, when=eta or countdown) from exc


def _changed(new: Any, old: Any) -> bool:
    if new is None:
        return False
    return bool(list(new) != list(old or ())) if isinstance(new, list | tuple) else bool(new != old)
