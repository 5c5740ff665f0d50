"""Every error a user of Tidegate can meet: one base class, a stable `code`, and what to do next.

Errors derive from plain `Exception` on purpose. Celery's workers treat kombu's `OperationalError`, `OSError` and
`KeyError` as a lost connection and retry or reconnect on them (found by running Celery 5.7), which would turn a
truthful refusal into a loop.
"""

from __future__ import annotations

from typing import Any, ClassVar


class TidegateError(Exception):
    """Base of all errors of this package.

    `code` is stable and meant for programs; `exit_code` is the status of the command line: 1 refused,
    2 usage, 3 store unreachable, 4 configuration.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    #: names of the constructor's arguments, in order; they make the error picklable (Celery sends errors
    #: of a task from the child to the main process) and are the fields of `as_dict()`.
    fields: ClassVar[tuple[str, ...]] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.fields:
            return type(self), self.args
        return type(self), tuple(getattr(self, name) for name in self.fields)

    def as_dict(self) -> dict[str, Any]:
        """The error as JSON-able fields, for `--json` and for the API."""
        return {
            "error": self.code,
            "message": str(self),
            **{name: getattr(self, name) for name in self.fields},
        }


class Refused(TidegateError):
    """The store answered, and the answer was no. Nothing was enqueued."""

    code = "refused"


class QueueFull(Refused):
    """A bound was reached; nothing was enqueued.

    scope: what is full (`queue:NAME`, `tenant:NAME` or `store`); depth and limit: unfinished jobs now and allowed
    (0 for the store, whose bound is memory);
    retry_after: seconds after which room is likely.
    """

    code = "full"
    fields = ("scope", "depth", "limit", "retry_after")

    def __init__(self, scope: str, depth: int, limit: int, retry_after: float) -> None:
        self.scope, self.depth, self.limit, self.retry_after = scope, depth, limit, retry_after
        if scope == "store":
            super().__init__(
                f"the store's memory is full; try again in {retry_after:g} s, or give the server more (maxmemory)"
            )
            return
        super().__init__(
            f"{scope} is full ({depth} unfinished of {limit} allowed); "
            f"try again in {retry_after:g} s, or raise its max_depth"
        )


class QueueClosed(Refused):
    """The queue takes no new jobs (`tidegate queues open NAME` ends that)."""

    code = "closed"
    fields = ("queue",)

    def __init__(self, queue: str) -> None:
        self.queue = queue
        super().__init__(f"queue {queue!r} is closed for new jobs; `tidegate queues open {queue}` opens it")


class UnknownQueue(Refused):
    """The queue is not declared in the settings."""

    code = "unknown_queue"
    fields = ("queue", "hint")

    def __init__(self, queue: str, hint: str = "") -> None:
        self.queue, self.hint = queue, hint
        meant = f"; did you mean {hint!r}?" if hint else ""
        super().__init__(
            f"queue {queue!r} is not declared{meant} "
            f"(declare [queues.{queue}] in tidegate.toml, or set [queues] open = true)"
        )


class IdempotencyConflict(Refused):
    """The same idempotency key was used before with another body."""

    code = "conflict"
    fields = ("key", "operation_id")

    def __init__(self, key: str, operation_id: str) -> None:
        self.key, self.operation_id = key, operation_id
        super().__init__(
            f"idempotency key {key!r} already names operation {operation_id} with a different body; "
            f"use a new key, or send the same arguments"
        )


class TooLarge(Refused):
    """The message is larger than the fleet allows."""

    code = "too_large"
    fields = ("size", "limit")

    def __init__(self, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(
            f"the message is {size} bytes, more than the {limit} allowed (fleet.max_body); "
            f"put the data elsewhere and send a reference"
        )


class NeverRunnable(Refused):
    """The job could never be started (its cost is above a bucket's capacity)."""

    code = "never_runnable"
    fields = ("resource", "cost", "capacity")

    def __init__(self, resource: str, cost: int, capacity: int) -> None:
        self.resource, self.cost, self.capacity = resource, cost, capacity
        super().__init__(
            f"the job costs {cost} of {resource}, which never holds more than {capacity}; "
            f"split the job, or raise the budget"
        )


class InvalidJob(Refused):
    """An argument of `enqueue` is wrong: not JSON, an empty or over-long name, a negative time."""

    code = "invalid"
    exit_code = 2
    fields = ("what", "where", "expected")

    def __init__(self, what: str, where: str, expected: str) -> None:
        self.what, self.where, self.expected = what, where, expected
        super().__init__(f"{where}: {what}; expected {expected}")


class JobDead(TidegateError):
    """What a caller's `get()` raises for a job that ended without an error of its body (it waited too long, say)."""

    code = "job_dead"


class StoreUnavailable(TidegateError):
    """The store did not answer in time. For `enqueue`: whether the job was taken is unknown only if `maybe_done`."""

    code = "store_unavailable"
    exit_code = 3
    fields = ("url", "reason", "maybe_done")

    def __init__(self, url: str, reason: str, maybe_done: bool = False) -> None:
        self.url, self.reason, self.maybe_done = url, reason, maybe_done
        tail = (
            "; the request may have been carried out: sending it again with the same idempotency key is safe"
            if maybe_done
            else ""
        )
        super().__init__(f"the store at {url} cannot be reached: {reason}{tail}")


class StoreRefused(TidegateError):
    """The store answers but must not be used as it is (version, eviction, key schema, lost data)."""

    code = "store_refused"
    exit_code = 4
    fields = ("url", "what", "remedy")

    def __init__(self, url: str, what: str, remedy: str) -> None:
        self.url, self.what, self.remedy = url, what, remedy
        super().__init__(f"the store at {url} cannot be used: {what}; {remedy}")
