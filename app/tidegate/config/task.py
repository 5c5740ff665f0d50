"""[tasks.NAME], and the same options in a decorator: `@shared_task(tidegate={...})`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeVar

from tidegate.config.compound import or_infinite, words_of
from tidegate.config.field import optional, record
from tidegate.config.kind import choice, duration, integer, name, number
from tidegate.domain.backoff import Backoff, Jitter
from tidegate.domain.job import Effect

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicySettings:
    """[tasks.NAME.retry]"""

    kind: Backoff | None = optional(choice(Backoff), "Fixed or exponential backoff.")
    interval: float | None = optional(duration(0.001), "Wait of fixed backoff.")
    base: float | None = optional(duration(0.001), "First wait of exponential backoff.")
    multiplier: float | None = optional(number(1, 100), "Growth of exponential backoff.")
    cap: float | None = optional(duration(0.001), "Longest wait.")
    jitter: Jitter | None = optional(choice(Jitter), "Part of the wait that is random.")
    max_retries: int | None = optional(integer(0, 10_000), "Extra attempts: 3 means 4 attempts.")
    max_crashes: int | None = optional(
        integer(0, 1_000), "Attempts that may end with the loss of their worker."
    )
    window: float | None = optional(
        or_infinite("none", duration(0.001)), "Time for retries from the first failure."
    )
    retry_on: tuple[str, ...] | None = optional(
        words_of(name("an error code")), "Error codes to retry; empty: by class.", later=True
    )


#: seconds; a job's record has four bytes for the milliseconds of each of these timeouts
LONGEST = 49 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutSettings:
    """[tasks.NAME.timeouts]; `"none"` in the file is infinity here."""

    queue: float | None = optional(
        or_infinite("none", duration(0.001, LONGEST)),
        "From entry to the queue until a worker starts the job.",
    )
    attempt: float | None = optional(duration(0.001, LONGEST), "Of one attempt, from claim to outcome.")
    step: float | None = optional(
        or_infinite("none", duration(0.001)), "Of the job, from its first entry until success."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """[tasks.NAME]; None means: not said here."""

    queue: str | None = optional(name("a queue name"), "Queue of the task.")
    effect: Effect | None = optional(choice(Effect), "What repeating the task would do.")
    timeouts: TimeoutSettings = record(TimeoutSettings, "Timeouts of the task.")
    dependencies: tuple[str, ...] | None = optional(
        words_of(name("the name of a dependency")), "What the task calls.", later=True
    )
    retry: RetryPolicySettings = record(RetryPolicySettings, "Retry policy of the task.")
    client_retries: int | None = optional(
        integer(0, 1_000), "Retries that the SDK inside does by itself.", later=True
    )

    def over(self, other: TaskSettings) -> TaskSettings:
        """These settings, and `other`'s where these say nothing (order: file > decorator > Celery > defaults)."""
        return _over(self, other)


DEFAULT_TASK = TaskSettings(
    queue="default",
    effect=Effect.IDEMPOTENT,
    timeouts=TimeoutSettings(queue=inf, attempt=600.0, step=86_400.0),
    dependencies=(),
    retry=RetryPolicySettings(
        kind=Backoff.EXPONENTIAL,
        base=2.0,
        multiplier=2.0,
        cap=30.0,
        jitter=Jitter.EQUAL,
        max_retries=3,
        max_crashes=3,
        window=86_400.0,
        retry_on=(),
    ),
    client_retries=0,
)


def _over(upper: D, lower: D) -> D:
    """Field by field: upper's value unless it is None; records are merged the same way."""
    merged = {}
    for item in dataclasses.fields(upper):
        above, below = getattr(upper, item.name), getattr(lower, item.name)
        merged[item.name] = (
            _over(above, below) if dataclasses.is_dataclass(above) else below if above is None else above
        )
    return dataclasses.replace(upper, **merged)
