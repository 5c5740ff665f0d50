"""What schedules start in these tests."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from celery import chain, shared_task
from tests.harness import ledger

from tidegate import current_job


def _note(step: str) -> None:
    here = current_job()
    at = here.logical_fire_time
    ledger.note(
        "fired",
        step=step,
        schedule=here.schedule,
        operation=here.operation_id,
        at=at.isoformat() if at else None,
        zone=str(at.tzinfo) if at else None,
    )


@shared_task
def report(region: str) -> str:
    """Tells what it knows of its fire, and lets another task go on."""
    _note(region)
    chain(followed.si(), app=followed.app).apply_async()
    return region


@shared_task
def followed() -> None:
    _note("followed")
