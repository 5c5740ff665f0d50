"""Tasks that tell their caller what they saw; any Celery project could have them."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

from celery import Task, shared_task

import tidegate


@shared_task
def echo(value: Any) -> Any:
    return value


@shared_task
def seen(previous: Any = None) -> dict[str, Any]:
    """The job as its body sees it."""
    job = tidegate.current_job()
    return {
        "operation_id": job.operation_id,
        "step": job.step,
        "task_id": job.task_id,
        "tenant": job.tenant,
        "attempt": job.attempt,
        "fence": job.fence,
        "effect": job.effect.value,
        "deadline": job.deadline.isoformat() if job.deadline else None,
        "remaining": job.remaining(),
    }


@shared_task
def publish(how: str, **options: Any) -> dict[str, Any]:
    """Send `seen` from inside a task; what its receipt says."""
    if how == "enqueue":
        receipt = tidegate.enqueue(seen, **options)
        return {"operation_id": receipt.operation_id, "step": receipt.step, "task_id": receipt.task_id}
    result = seen.apply_async(headers=options)
    return {"task_id": result.id}


@shared_task(bind=True)
def swap(self: Task) -> Any:
    """Becomes another task."""
    raise self.replace(seen.s())


@shared_task
def flood(queue: str, count: int) -> dict[str, int]:
    """A crawler: sends as much as it may."""
    full = 0
    for _ in range(count):
        try:
            echo.apply_async((1,), queue=queue)
        except tidegate.QueueFull:
            full += 1
    return {"sent": count - full, "full": full}


@shared_task(ignore_result=True)
def silent() -> None:
    """Keeps no result."""


@shared_task
def boom() -> None:
    raise ValueError("boom")


@shared_task
def typed(x: int, *, y: str = "") -> str:
    return f"{x}{y}"


@shared_task(
    tidegate={"effect": "at_most_once", "timeouts": {"attempt": "7s", "queue": "8s"}, "queue": "small"}
)
def decorated() -> None:
    """Options in the decorator."""


@shared_task(time_limit=5, expires=6)
def celerys() -> None:
    """Celery's own options."""
