"""`tidegate.current_job()`: what a task body may ask about its own job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from celery import current_app

from tidegate.domain.header import HEADER
from tidegate.domain.job import Effect


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """One attempt, seen from inside. `attempt` grows with every start and is never used twice."""

    operation_id: str
    step: str
    task_id: str
    tenant: str
    attempt: int
    charged: int  #: failed attempts before this one that count against max_retries
    fence: (
        int  #: fencing token: send it along with writes, and a later attempt can be told from an earlier one
    )
    effect: Effect
    deadline: datetime | None  #: of the whole operation, in UTC
    ends: datetime | None  #: when this attempt is killed: its timeout or the deadline, whichever comes first
    schedule: str  #: the schedule whose fire began the operation; "" for any other
    logical_fire_time: datetime | None  #: of that fire, in the schedule's zone; only with `pass_fire_time`

    def remaining(self) -> float:
        """Seconds until this attempt is killed; infinity if nothing kills it, 0 if its time is over."""
        if self.ends is None:
            return float("inf")
        return max(self.ends.timestamp() - time.time(), 0.0)


def current_job() -> CurrentJob:
    """The job whose body runs here. Raises LookupError outside of a task that came through Tidegate."""
    task = current_app.current_worker_task
    header = getattr(task.request, HEADER, None) if task else None
    if not isinstance(header, Mapping) or "attempt" not in header:
        raise LookupError("current_job() was called outside of a task that Tidegate delivered")
    return CurrentJob(
        operation_id=header["operation_id"],
        step=header.get("step", ""),
        task_id=task.request.id,
        tenant=header["tenant"],
        attempt=header["attempt"],
        charged=header.get("charged", 0),
        fence=header.get("fence", 0),
        effect=Effect(header.get("effect", Effect.IDEMPOTENT.value)),
        deadline=_instant(header.get("deadline")),
        ends=_instant(header.get("ends")),
        schedule=header.get("schedule", ""),
        logical_fire_time=_fire_time(header.get("logical_fire_time")),
    )


def _fire_time(text: Any) -> datetime | None:
    """From RFC 9557: the offset says the instant, the zone in brackets how it is written."""
    if not isinstance(text, str) or not text:
        return None
    instant, _, zone = text.partition("[")
    return datetime.fromisoformat(instant).astimezone(ZoneInfo(zone.rstrip("]")))


def _instant(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
