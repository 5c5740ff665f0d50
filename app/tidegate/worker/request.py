"""Celery's request with one place where each attempt ends.

`create_request_cls` of Celery 5.7 makes a subclass with its own `on_success` and `execute_using_pool`, which would
shadow ours: they are wrapped when that subclass is made. All other hooks override as usual. The contract tests in
tests/integration/celery_contract hold Celery to what is assumed here.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from billiard.common import TERM_SIGNAME
from billiard.einfo import ExceptionInfo
from celery.exceptions import Reject, TaskRevokedError, Terminated, TimeLimitExceeded
from celery.platforms import signals as platform_signals
from celery.worker import state as worker_state
from celery.worker.request import Request

from tidegate.domain.job import LeaseRef
from tidegate.worker import ends, runtime
from tidegate.worker.ends import Ending

logger = logging.getLogger(__name__)


class NotStarted(TaskRevokedError):
    """The lease was given back or lost before the body started; nothing is to be reported."""


class FleetRequest(Request):
    """One attempt in the main process of a worker."""

    #: how this attempt ended, known a moment before it is acknowledged
    _ending: Ending | None = None
    #: the body is dead only on the next turn of the event loop (hard time limit)
    _ends_later = False
    #: somebody revoked the running task with `terminate`
    _by_person = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "on_success" in cls.__dict__:
            cls.on_success = _wrap_success(cls.__dict__["on_success"])
        if "execute_using_pool" in cls.__dict__:
            cls.execute_using_pool = _wrap_execute(cls.__dict__["execute_using_pool"])

    def __init__(self, message: Any, *args: Any, **options: Any) -> None:
        super().__init__(message, *args, **options)
        self.ref = LeaseRef.parse(message.delivery_tag)
        self.desk = runtime.required()
        limits: Any = self._request_dict["timelimit"]
        own = self.task.time_limit
        if own and limits[0] and own < limits[0]:
            # in Celery the message's limit replaces the task's; the shorter one holds
            self.time_limits = self._request_dict["timelimit"] = [own, limits[1]]

    # --- the start

    def hand(self) -> None:
        """The gate in front of the body. Raises NotStarted unless it may start, which it may once."""
        if not self.desk.leases.hand(self.ref):
            self._leave()
            raise NotStarted(self.id)

    def on_accepted(self, pid: int, time_accepted: float) -> None:
        if not self.desk.forks:
            self.hand()  # the pool calls this before the body, and does not call the body if it raises
        super().on_accepted(pid, time_accepted)

    def _leave(self) -> None:
        """Out of Celery's books; nothing is to be told to anybody."""
        worker_state.task_ready(self)
        self.acknowledged = True

    # --- the end

    def end(self, ending: Ending) -> None:
        """Report how this attempt ended; whoever reports first wins."""
        self.desk.leases.end(ending.outcome(self.ref))

    def acknowledge(self) -> None:
        # Celery would go through kombu to tell the broker; the store learns it with the next claim
        if not self.acknowledged:
            self.acknowledged = True
            self._report()

    def reject(self, requeue: bool = False) -> None:
        """Never back to the broker: the store has it."""
        if not self.acknowledged:
            self.acknowledge()
            self.send_event("task-rejected", requeue=requeue)

    def _report(self) -> None:
        ending, hub = self._ending or ends.OK, self.desk.hub
        if self._ends_later and hub is not None:
            # billiard tells us first and kills the child afterwards, in the same turn of the event loop
            hub.call_soon(functools.partial(self.end, ending))
            return
        self.end(ending)
        if self.desk.forks:
            self.desk.ask()
        elif hub is not None:
            hub.call_soon(noop)  # a thread of the pool must wake the loop: there is a free slot

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> None:
        error = ends.unwrapped(exc_info.exception)
        if not self._is_told(error):
            self._leave()
            self.end(ends.cancelled(self.desk.leases.get(self.ref)))
            return
        self._ending = self._ending_of(error, exc_info)
        self._ends_later = isinstance(error, TimeLimitExceeded)
        try:
            super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)
            if isinstance(error, Reject) and error.requeue:
                self._store_failure(error)  # Celery leaves the result as it is: the message would come again
        except MemoryError as lack:
            # Celery ends the worker here, and the message would end the next one
            logger.error("task %s[%s] ran out of memory", self.name, self.id)
            self._store_failure(lack)
        finally:
            self.acknowledge()  # of one cancelled by a stopping worker Celery waits for a redelivery

    def _is_told(self, error: BaseException) -> bool:
        """False if we killed the body ourselves (its lease is lost, or this worker stops): then its result is another
        attempt's to write."""
        if isinstance(error, Terminated) and not self._by_person and not self._already_cancelled:
            return False
        return self.desk.leases.unfinished(self.ref)

    def _ending_of(self, error: BaseException, exc_info: Any) -> Ending:
        if self._already_cancelled:
            return ends.cancelled(self.desk.leases.get(self.ref))
        return ends.of_exception(error, str(exc_info.traceback or ""), self.desk.server_now_ms())

    def _success_was_stored(self) -> Any:
        # the child was lost after its task had succeeded, in a hook
        found = super()._success_was_stored()
        if found:
            self._ending = ends.OK
        return found

    def _store_failure(self, error: BaseException) -> None:
        self.task.backend.mark_as_failure(
            self.id, error, request=self._context, store_result=self.store_errors
        )

    def on_timeout(self, soft: bool, timeout: float) -> None:  # billiard calls it by keyword
        if soft or self._ending is None:
            super().on_timeout(soft, timeout)
        # a hard limit came through on_failure a moment ago; Celery would run the errbacks a second time

    # --- a person, or a stopping worker

    def terminate(self, pool: Any, signal: Any = None) -> None:
        """As Celery's, without its announcement: the body may ignore the signal and finish."""
        number = platform_signals.signum(signal or TERM_SIGNAME)
        self._by_person = True
        if self.time_start:
            pool.terminate_job(self.worker_pid, number)
        else:
            self._terminate_on_ack = pool, number
        result = self._apply_result() if self._apply_result is not None else None
        if result is not None and hasattr(result, "terminate"):
            result.terminate(number)

    def _announce_revoked(self, reason: str, terminated: bool, signum: Any, expired: bool) -> None:
        self._ending = ends.TERMINATED if terminated else ends.REVOKED
        super()._announce_revoked(reason, terminated, signum, expired)

    # --- what a pool swallows

    def escaped(self, error: BaseException) -> None:
        """An error left the pool without a callback (MemoryError in threads and solo): end the attempt with it."""
        if isinstance(error, NotStarted) or self.acknowledged:
            return
        try:
            raise error
        except BaseException:  # noqa: BLE001 - only to give it a traceback in billiard's form
            self.on_failure(ExceptionInfo())


def noop() -> None:
    """Something for the event loop to wake up for."""


def _wrap_success(original: Callable[..., None]) -> Callable[..., None]:
    def on_success(self: FleetRequest, failed__retval__runtime: Any, **options: Any) -> None:
        if isinstance(failed__retval__runtime, ExceptionInfo):  # sys.exit() in threads and solo
            self.on_failure(failed__retval__runtime)
        else:
            original(self, failed__retval__runtime, **options)

    return on_success


def _wrap_execute(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute_using_pool(self: FleetRequest, pool: Any, **options: Any) -> Any:
        if not self.desk.forks:
            return _execute_here(self, pool, original, options)
        self.hand()
        return original(self, pool, **options)

    return execute_using_pool


def _execute_here(
    request: FleetRequest, pool: Any, original: Callable[..., Any], options: dict[str, Any]
) -> Any:
    try:
        result = original(request, pool, **options)
    except TaskRevokedError:
        raise  # not started; Celery's consumer expects it
    except Exception as error:  # noqa: BLE001 - solo: what escaped the body's tracer is the end of this attempt
        request.escaped(error)
        return None
    future = getattr(result, "f", None)
    if future is not None:
        future.add_done_callback(functools.partial(_look_at, request))
    return result


def _look_at(request: FleetRequest, future: Any) -> None:
    """A thread of the pool is done with a body: errors that it swallowed are still reported."""
    if not future.cancelled() and (error := future.exception()) is not None:
        request.escaped(error)
