"""Tasks as any Celery project has them: not one line of Tidegate. Bodies tell the ledger that they ran."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from celery import Task, chain, shared_task
from celery.exceptions import Ignore, Reject
from tests.harness import ledger


@shared_task
def add(x: int, y: int) -> int:
    return x + y


@shared_task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@shared_task
def echo(value: Any) -> Any:
    return value


@shared_task
def mark(job: str, value: int = 0) -> int:
    """Tell the ledger, give the value on."""
    ledger.end(ledger.begin(job))
    return value


@shared_task(bind=True)
def flaky(self: Task, job: str, failures: int, value: int = 0) -> int:
    """Fails that often, then gives the value."""
    ledger.end(ledger.begin(job))
    if self.request.retries < failures:
        raise ValueError(f"attempt {self.request.retries + 1} of {job}")
    return value


@shared_task
def doomed(job: str) -> None:
    """Fails whenever it runs; the ledger never hears of an end."""
    ledger.begin(job)
    raise ValueError(job)


@shared_task(bind=True, max_retries=1, default_retry_delay=0.1)
def celery_says(self: Task, job: str) -> None:
    """Never works; Celery's options say how often it is tried."""
    ledger.end(ledger.begin(job))
    raise ValueError(job)


@shared_task(max_retries=5, tidegate={"retry": {"kind": "fixed", "interval": "100ms", "max_retries": 0}})
def decorator_says(job: str) -> None:
    """Never works; its decorator says that it is tried once."""
    ledger.end(ledger.begin(job))
    raise ValueError(job)


@shared_task
def mended(job: str, path: str, value: int = 0) -> int:
    """Fails until there is a file at `path`."""
    ledger.end(ledger.begin(job))
    if not os.path.exists(path):  # noqa: PTH110 - as tasks are written
        raise ConnectionError("not yet mended")
    return value


@shared_task(ignore_result=True)
def heard(value: Any, job: str) -> None:
    """A callback: what it was called with."""
    ledger.note("heard", job=job, value=value)


@shared_task(ignore_result=True)
def mourn(task_id: str) -> None:
    """An errback with one argument, which Celery sends as a job: it gets the id."""
    ledger.note("mourned", job=task_id, by="id")


@shared_task(ignore_result=True)
def mourn_here(request: Any, error: BaseException, traceback: Any, job: str) -> None:
    """An errback that runs where the failure is written: it gets the request and the error."""
    ledger.note("mourned", job=job, by="error", error=f"{type(error).__name__}: {error}")


@shared_task(bind=True)
def swap(self: Task, x: int) -> Any:
    raise self.replace(chain(add.s(x, 1), add.s(100)))


@shared_task
def nap(job: str, seconds: float) -> str:
    attempt = ledger.begin(job)
    time.sleep(seconds)
    ledger.end(attempt)
    return job


@shared_task
def stubborn(job: str, seconds: float) -> str:
    """Ignores a polite signal and finishes."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        return str(nap.run(job, seconds))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Shouting(Exception):
    """Cannot be pickled, and says when to come back."""

    retry_after = 7

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


class OldTask(Task):  # type: ignore[misc]
    """A base class of the project's own, made before anybody heard of Tidegate."""

    acks_late = False


@shared_task(bind=True, base=OldTask)
def end(self: Task, job: str, how: str) -> Any:
    """End in the way that is asked for."""
    attempt = ledger.begin(job)
    result = _end(self, how)
    ledger.end(attempt)
    return result or job


def _end(task: Task, how: str) -> Any:
    match how:
        case "boom":
            raise ValueError("no luck")
        case "oserror":
            raise ConnectionRefusedError(111, "refused")
        case "unpicklable":
            raise Shouting("try", "later")
        case "retry":
            raise task.retry(countdown=60, exc=ValueError("later"))
        case "retry_changed":
            raise task.retry(args=("other", "ok"), countdown=1)
        case "reject":
            raise Reject("not mine", requeue=False)
        case "reject_requeue":
            raise Reject("not now", requeue=True)
        case "ignore":
            raise Ignore
        case "exit":
            sys.exit(3)
        case "memory":
            raise MemoryError
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "interrupt":
            raise KeyboardInterrupt
        case "badresult":
            return object()
        case "sleep":
            time.sleep(30)
    return None


@shared_task(bind=True, base=OldTask, autoretry_for=(KeyError,), retry_backoff=30)
def auto(self: Task, job: str) -> None:
    ledger.end(ledger.begin(job))
    raise KeyError("again")


@shared_task(soft_time_limit=0.5, time_limit=20)
def soft(job: str) -> None:
    ledger.begin(job)
    time.sleep(30)


@shared_task(time_limit=0.5)
def hard(job: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only SIGKILL ends it
    ledger.begin(job)
    time.sleep(30)
