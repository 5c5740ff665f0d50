"""What a producer asks for: a task, its arguments, what is said about the job. Values only; nothing is sent here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from tidegate.domain.errors import InvalidJob
from tidegate.domain.names import checked_name
from tidegate.domain.priority import parse_priority
from tidegate.worker.said import Duration, Identity

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Options(Identity, total=False):
    """Keywords of `enqueue`. All may be left out.

    tenant, operation_id, priority, queue_timeout, deadline: as in `tidegate.context`, which they win over.
    idempotency_key: text, or several fields as a list; the same key of the same tenant and task is one job.
    queue: a declared queue, if not the task's. delay or eta: when the job may start, at the earliest.
    resources: names of what the job also occupies (`key:customer-42`). cost: units per budget (`{"tokens": 1200}`);
    carried with the job, acted on by a later release.
    """

    queue: str
    delay: Duration
    eta: datetime


NAMES: Final = (*Identity.__annotations__, "queue", "delay", "eta")


class TaskLike(Protocol[P, R_co]):
    """A Celery task object, as far as its signature is concerned."""

    name: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


@dataclass(frozen=True, slots=True)
class Call(Generic[R_co]):
    """One task with its arguments and options."""

    task: str | TaskLike[..., R_co]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=lambda: Options())

    def __post_init__(self) -> None:
        if isinstance(self.args, str | bytes) or not isinstance(self.args, Sequence):
            raise InvalidJob(f"of type {type(self.args).__name__}", "args", "a list or tuple of arguments")
        if not isinstance(self.kwargs, Mapping):
            raise InvalidJob(f"of type {type(self.kwargs).__name__}", "kwargs", "a mapping of arguments")
        checked_name(self.name, "task")
        checked_options(self.options)

    @property
    def name(self) -> str:
        """The task's name."""
        return self.task if isinstance(self.task, str) else getattr(self.task, "name", cast("str", self.task))

    def using(self, **options: Unpack[Options]) -> Call[R_co]:
        """The same call with these options added; they win over those it has."""
        return replace(self, options=cast("Options", {**self.options, **options}))


@overload
def call(task: str, *args: Any, **kwargs: Any) -> Call[Any]: ...
@overload
def call(task: TaskLike[P, R], *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
def call(task: Any, *args: Any, **kwargs: Any) -> Call[Any]:
    """`task(*args, **kwargs)` as a value for `enqueue` and `enqueue_many`.

    Of a task object, a type checker compares the arguments. Options: `call(...).using(tenant="acme")`.
    """
    return Call(task, args, kwargs)


def checked_options(options: Mapping[str, Any]) -> None:
    """Raises InvalidJob for an option that does not exist, a delay beside an eta, and a priority that is none."""
    for name in options:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            meant = f"{near[0]!r}" if near else f"one of {', '.join(NAMES)}"
            raise InvalidJob("no such option", name, meant)
    if options.get("priority") is not None:
        parse_priority(options["priority"], amqp=False)  # Celery's own callers may say any integer
    if options.get("delay") is not None and options.get("eta") is not None:
        raise InvalidJob("given beside delay", "eta", "one of the two")
