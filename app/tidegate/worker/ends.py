"""How an attempt ended, in the words of the store. Pure: exceptions and facts in, an `Ending` out.

Celery says how a task ended in a dozen places; every one of them comes through here (`request.py`, `consumer.py`),
so that the kinds and reasons cannot drift apart. Nothing here decides about a retry: that is the authority's.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded, Terminated, TimeLimitExceeded, WorkerLostError
from celery.exceptions import Ignore, Reject, Retry
from kombu.exceptions import ContentDisallowed, DecodeError

from tidegate.domain.header import HEADER
from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, Outcome, OutcomeKind
from tidegate.domain.states import Reason

#: characters kept of a message and of a traceback: a report must not outgrow the job
MESSAGE_LIMIT, TRACEBACK_LIMIT = 2_000, 16_000


@dataclass(frozen=True, slots=True)
class Ending:
    """What an outcome says, before it is known to which lease it belongs."""

    kind: OutcomeKind
    reason: Reason = Reason.NONE
    detail: dict[str, Any] = field(default_factory=dict)
    not_before_ms: int = 0

    def outcome(self, ref: LeaseRef) -> Outcome:
        return Outcome(ref, self.kind, self.reason, dump(self.detail), self.not_before_ms)


OK = Ending(OutcomeKind.OK)
#: `Ignore`: the task took care of itself (Task.replace ends this way)
IGNORED = Ending(OutcomeKind.OK, Reason.IGNORED)
RELEASED = Ending(OutcomeKind.RELEASE)
REVOKED = Ending(OutcomeKind.CANCELLED, Reason.REVOKED)
TERMINATED = Ending(OutcomeKind.CANCELLED, Reason.TERMINATED)


def dump(detail: dict[str, Any]) -> str:
    """Detail as the store keeps it: JSON text, or nothing."""
    return json.dumps(detail, ensure_ascii=True) if detail else ""


def of_exception(error: BaseException, traceback: str = "", now_ms: int = 0) -> Ending:
    """How an attempt ended whose body, child or time limit gave this exception. now_ms: the server's clock."""
    error = unwrapped(error)
    match error:
        case Retry():
            return _retry(error, traceback, now_ms)
        case Reject():
            detail = described(error, traceback) | {"requeue": bool(error.requeue)}
            return Ending(OutcomeKind.FAILED, Reason.REJECTED, detail)
        case Ignore():
            return IGNORED
        case SoftTimeLimitExceeded():
            reason = Reason.SOFT_TIMEOUT
        case TimeLimitExceeded():
            reason = Reason.ATTEMPT_TIMEOUT
        case Terminated():
            return TERMINATED
        case WorkerLostError() | SystemExit() | KeyboardInterrupt():
            reason = Reason.WORKER_LOST
        case MemoryError():
            reason = Reason.MEMORY
        case _:
            reason = Reason.ERROR
    return Ending(OutcomeKind.FAILED, reason, described(error, traceback))


def undeliverable(error: BaseException) -> Ending:
    """No worker can ever run these bytes: what Celery said when it tried to read them."""
    undecodable = isinstance(error, DecodeError | ContentDisallowed | UnicodeError)
    reason = Reason.UNDECODABLE if undecodable else Reason.INVALID_MESSAGE
    return Ending(OutcomeKind.UNDELIVERABLE, reason, described(error))


def unknown_task(name: str) -> Ending:
    """No task of that name in this worker."""
    detail = {"class": "celery.exceptions.NotRegistered", "message": f"no task named {name!r}"}
    return Ending(OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK, detail)


def cancelled(job: ClaimedJob | None) -> Ending:
    """A stopping worker killed the body: what may be repeated goes back uncharged, the rest waits for the authority."""
    if job is not None and job.effect is Effect.AT_MOST_ONCE:
        return Ending(OutcomeKind.FAILED, Reason.TERMINATED)
    return RELEASED


def described(error: BaseException, traceback: str = "") -> dict[str, Any]:
    """class, message, and where known traceback, error_code, retry_after."""
    found: dict[str, Any] = {"class": _class_of(error), "message": _text_of(error)[:MESSAGE_LIMIT]}
    if traceback:
        # the end of a traceback names the place
        found["traceback"] = traceback[-TRACEBACK_LIMIT:]
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        found["error_code"] = errno.errorcode[error.errno]
    retry_after = getattr(error, "retry_after", None)
    if isinstance(retry_after, int | float) and not isinstance(retry_after, bool) and retry_after >= 0:
        found["retry_after"] = retry_after
    return found


def unwrapped(error: BaseException) -> BaseException:
    """billiard carries an exception and its traceback in one parcel; Retry has an `exc` of its own and stays."""
    inner = getattr(error, "exc", None)
    if type(error).__name__ == "ExceptionWithTraceback" and isinstance(inner, BaseException):
        return inner
    return error


def _retry(error: Retry, traceback: str, now_ms: int) -> Ending:
    cause = error.exc if isinstance(error.exc, BaseException) else error
    detail = described(cause, traceback)
    not_before = _instant(error.when, now_ms)
    if not_before:
        detail["not_before_ms"] = not_before
    return Ending(OutcomeKind.FAILED, Reason.RETRY_REQUESTED, detail, not_before)


def _instant(when: object, now_ms: int) -> int:
    """Celery's `when` is seconds from now or an instant; 0 if the task named none."""
    if isinstance(when, datetime):
        return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(when, int | float) and not isinstance(when, bool) and when > 0:
        return now_ms + round(when * 1000)
    return 0


def _class_of(error: BaseException) -> str:
    # an exception that cannot be pickled arrives as a wrapper that knows its name
    name, module = getattr(error, "exc_cls_name", None), getattr(error, "exc_module", None)
    if isinstance(name, str) and isinstance(module, str):
        return f"{module}.{name}"
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - foreign __str__; the report matters more than its text
        return f"(its message raised {type(broken).__name__})"


def attempt_ref(request: Any) -> LeaseRef | None:
    """The lease of the attempt that a Celery request or context belongs to; None for anything that is no attempt."""
    header = getattr(request, HEADER, None)
    if not isinstance(header, dict):
        return None
    job_id, fence = header.get("job_id"), header.get("fence")
    return LeaseRef(job_id, fence) if isinstance(job_id, str) and isinstance(fence, int) else None
