"""The dead-letter desk, first form: what lies there."""

from __future__ import annotations

from tidegate.config import Settings
from tidegate.domain.job import JobView
from tidegate.domain.states import State
from tidegate.service.opened import opened
from tidegate.store import DeadLetter


def dead_letters(settings: Settings, most: int = 50, skip: int = 0) -> tuple[int, tuple[DeadLetter, ...]]:
    """How many there are, and some of them, the latest first. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    with opened(settings) as store:
        return store.dead_letters(most, skip)


def dead_letter(settings: Settings, operation_id: str, step: str = "") -> JobView | None:
    """One of them, by its name; None if there is no dead job of that name. Raises as `dead_letters`."""
    with opened(settings) as store:
        found = store.job(operation_id, step)
    return found if found is not None and found.state is State.DEAD else None
