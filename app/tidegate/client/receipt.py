"""What a producer gets back, and how it learns what became of the job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from celery.result import assert_will_not_block

from tidegate.domain.errors import StoreUnavailable, TidegateError
from tidegate.domain.job import NewJob
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted, Duplicate

if TYPE_CHECKING:
    from celery.result import AsyncResult

    from tidegate.client.producer import Producer

R_co = TypeVar("R_co", covariant=True)

Status = Literal["accepted", "duplicate"]

#: seconds between two looks at the job while its result is waited for: a dead job never gets one
LOOK_EVERY = 1.0
#: Seconds between two looks for the result. Celery would subscribe, and a subscription that finds its server gone
#: tries for 20 s and more to get it back, whatever the time-out, even when the handle is garbage-collected.
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.25


class NotFinished(TidegateError, TimeoutError):
    """The job has no result yet."""

    code = "not_finished"
    fields = ("operation_id", "state", "waited")

    def __init__(self, operation_id: str, state: str, waited: float) -> None:
        self.operation_id, self.state, self.waited = operation_id, state, waited
        super().__init__(f"operation {operation_id} has no result after {waited:g} s; its job is {state}")


class JobEnded(TidegateError):
    """The job ended without a result."""

    code = "job_ended"
    fields = ("operation_id", "state")

    def __init__(self, operation_id: str, state: str) -> None:
        self.operation_id, self.state = operation_id, state
        super().__init__(f"operation {operation_id} will never have a result: its job is {state}")


class NoResult(TidegateError):
    """Nothing keeps the result."""

    code = "no_result"
    fields = ("operation_id", "why")

    def __init__(self, operation_id: str, why: str) -> None:
        self.operation_id, self.why = operation_id, why
        super().__init__(f"there is no result of operation {operation_id}: {why}")


@dataclass(frozen=True, slots=True)
class Receipt(Generic[R_co]):
    """The store has the job.

    status: `accepted`, or `duplicate` if the store knew it already (same idempotency key, or same operation);
    pressure: how full the queue is, `green`, `yellow` or `red`, None for a duplicate; position: waiting jobs of the
    queue, this one included, 0 for a duplicate.
    """

    operation_id: str
    task_id: str
    status: Status
    pressure: str | None = None
    position: int = 0
    step: str = ""
    queue: str = ""
    _producer: Producer | None = field(default=None, repr=False, compare=False)
    _eager: Any = field(default=None, repr=False, compare=False)  #: what Celery ran here (task_always_eager)

    def state(self) -> State | None:
        """Where the job is now; None if the store has forgotten it (a finished one after fleet.history).

        Raises StoreUnavailable.
        """
        if self._eager is not None:
            return State.SUCCEEDED if self._eager.successful() else State.FAILED
        return self._sender().fleet.store.state(self.operation_id, self.step)

    def result(self, timeout: float | None = None) -> R_co:
        """What the task returned; waits for it, for ever without a `timeout` (seconds).

        Raises what the task raised; NotFinished (a TimeoutError) when the time is over; JobEnded if there will be no
        result (cancelled, dead letter); NoResult if the task ignores its result or the fleet keeps none;
        StoreUnavailable; RuntimeError inside a task, where waiting for another one would block a slot.
        """
        if self._eager is not None:
            eager: R_co = self._eager.get()
            return eager
        assert_will_not_block()
        sender, found = self._sender(), self.async_result
        if sender.settings.broker.result_backend == "none":
            raise NoResult(self.operation_id, 'the fleet keeps none (broker.result_backend = "none")')
        start = looked = time.monotonic()
        pause = FIRST_PAUSE
        while not _is_ready(found, sender):
            now = time.monotonic()
            if now - looked >= LOOK_EVERY:
                self._judge(found)
                looked = now
            if timeout is not None and now - start >= timeout:
                raise NotFinished(self.operation_id, _word(self.state()), timeout)
            time.sleep(pause if timeout is None else min(pause, max(start + timeout - now, 0.001)))
            pause = min(pause * 1.5, LONGEST_PAUSE)
        value: R_co = found.get()
        return value

    @property
    def async_result(self) -> AsyncResult:
        """Celery's own handle."""
        return self._sender().app.AsyncResult(self.task_id)

    def as_dict(self) -> dict[str, Any]:
        """The fields, for `--json`."""
        return {
            "operation_id": self.operation_id,
            "task_id": self.task_id,
            "status": self.status,
            "pressure": self.pressure,
            "position": self.position,
            "queue": self.queue,
        }

    def _judge(self, found: AsyncResult) -> None:
        """Raises if waiting on makes no sense."""
        state = self.state()
        if state in (State.DEAD, State.CANCELLED):
            raise JobEnded(self.operation_id, _word(state))
        # the result is written before the job is settled, so a look after that sees it if there is any
        if state is State.SUCCEEDED and not found.ready():
            raise NoResult(
                self.operation_id, "the task ignores its result, or it has expired (fleet.result_expires)"
            )

    def _sender(self) -> Producer:
        if self._producer is None:
            raise NoResult(self.operation_id, "this receipt was made in another process")
        return self._producer

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles carry the facts; they find their fleet anew in the process that has one."""
        return _restored, (
            self.operation_id,
            self.task_id,
            self.status,
            self.pressure,
            self.position,
            self.step,
            self.queue,
        )


def receipt(job: NewJob, verdict: Accepted | Duplicate, producer: Producer) -> Receipt[Any]:
    """The receipt of a job that the store has. Of a duplicate it names the job that was there first."""
    if isinstance(verdict, Duplicate):
        return Receipt(
            verdict.operation_id, job.task_id, "duplicate", step=job.step, queue=job.queue, _producer=producer
        )
    return Receipt(
        verdict.operation_id,
        job.task_id,
        "accepted",
        verdict.pressure.value,
        verdict.position,
        job.step,
        job.queue,
        producer,
    )


def _restored(*fields: Any) -> Receipt[Any]:
    return Receipt(*fields)


def _word(state: State | None) -> str:
    return state.name.lower() if state else "forgotten"


def _is_ready(found: AsyncResult, sender: Producer) -> bool:
    try:
        return bool(found.ready())
    except tuple(getattr(found.backend, "connection_errors", ())) as error:
        if isinstance(error, StoreUnavailable):
            raise
        raise StoreUnavailable(sender.settings.broker.shown_url, f"no result can be read: {error}") from error
