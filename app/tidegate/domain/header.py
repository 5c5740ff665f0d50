"""The one message header of Tidegate: a JSON object under the name `tidegate`, absent fields meaning "not said".

Written by the producer's side of every publish (worker/identity.py), read by the transport, completed at each
delivery with what the store knows of the attempt, and read again by `current_job()` and by publishes from inside
the task. Times are milliseconds; `deadline` is an instant since 1970 (UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from tidegate.domain.errors import InvalidJob
from tidegate.domain.job import ClaimedJob

HEADER = "tidegate"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHeader:
    """What a message says about its job before the store has seen it."""

    tenant: str
    operation_id: str
    step: str = ""
    deadline: int = 0  #: instant, ms; 0 = none
    queue_timeout: int = 0  #: ms in the queue; 0 = not said
    attempt_timeout: int = 0  #: ms of one attempt; 0 = not said
    priority: str = ""  #: a word; "" = not said
    key: str = ""  #: idempotency key; never inherited
    effect: str = ""
    resources: tuple[str, ...] = ()
    cost: Mapping[str, int] | None = None  #: carried for the budgets of a later release
    continuation: bool = False  #: next step of an admitted canvas: no bound refuses it
    known: bool = False  #: the caller chose operation_id: look for an earlier job of that name
    schedule: str = ""  #: whose fire the job is
    logical_fire_time: str = ""  #: planned instant of the fire, RFC 9557; only if the schedule passes it

    def as_dict(self) -> dict[str, Any]:
        """Only what is said; JSON-able."""
        said = ((name, getattr(self, name)) for name in _NAMES)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said if value}

    def written(self) -> WrittenHeader:
        """`as_dict`, as the header of a message that is about to be sent."""
        return WrittenHeader(self)

    @classmethod
    def from_dict(cls, raw: object) -> Self:
        """Inverse of `as_dict`; fields it does not know are ignored (they belong to a delivery or a newer release).

        Raises InvalidJob for anything that is no such header.
        """
        if not isinstance(raw, Mapping):
            raise InvalidJob(f"of type {type(raw).__name__}", f"headers.{HEADER}", "an object")
        known = {name: raw[name] for name in _NAMES if name in raw}
        for name, value in known.items():
            if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and _TYPES[name] is int):
                raise InvalidJob(
                    f"of type {type(value).__name__}", f"headers.{HEADER}.{name}", _TYPES[name].__name__
                )
        if "resources" in known:
            known["resources"] = tuple(known["resources"])
        for name in ("tenant", "operation_id"):
            if not known.get(name):
                raise InvalidJob("missing", f"headers.{HEADER}.{name}", "text")
        return cls(**known)


class WrittenHeader(dict[str, Any]):
    """The JSON form, with the value it was made from: the transport of the same process need not parse it again."""

    __slots__ = ("value",)

    def __init__(self, value: JobHeader) -> None:
        super().__init__(value.as_dict())
        self.value = value


_NAMES = tuple(field.name for field in fields(JobHeader))
_TYPES: dict[str, type] = {
    **dict.fromkeys(
        (
            "tenant",
            "operation_id",
            "step",
            "priority",
            "key",
            "effect",
            "schedule",
            "logical_fire_time",
        ),
        str,
    ),
    **dict.fromkeys(("deadline", "queue_timeout", "attempt_timeout"), int),
    **dict.fromkeys(("continuation", "known"), bool),
    "resources": list,
    "cost": dict,
}


def delivery_header(job: ClaimedJob) -> dict[str, Any]:
    """What the header says at a delivery: the job's identity as the store has it, and which attempt this is."""
    timeout_ms = job.claimed_ms + job.attempt_timeout_ms if job.attempt_timeout_ms else 0
    identity = {
        "tenant": job.tenant,
        "operation_id": job.operation_id,
        "step": job.step,
        "deadline": job.deadline_ms,
        "ends": min(filter(None, (timeout_ms, job.deadline_ms)), default=0),
    }
    return {name: value for name, value in identity.items() if value} | {
        "job_id": job.ref.job_id,
        "fence": job.ref.fence,
        "attempt": job.attempt,
        "charged": job.charged,
        "effect": job.effect.value,
    }
