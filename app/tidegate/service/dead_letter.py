"""The dead-letter desk: what lies there, what a replay would do, and the replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tidegate.config import Settings
from tidegate.domain.job import JobView
from tidegate.domain.states import State
from tidegate.service.actor import Actor
from tidegate.service.opened import opened
from tidegate.service.pick import Filter, Plan, plan_of
from tidegate.service.replay import Pace, Progress, Result, run
from tidegate.store import AuditLine, DeadLetter, Desk


def dead_letters(settings: Settings, most: int = 50, skip: int = 0) -> tuple[int, tuple[DeadLetter, ...]]:
    """How many there are, and some of them, the latest first. Raises StoreUnavailable, StoreRefused, EmbeddedError."""
    with opened(settings) as store:
        return store.dead_letters(most, skip)


def dead_letter(settings: Settings, operation_id: str, step: str = "") -> JobView | None:
    """One of them, by its name; None if there is no dead job of that name. Raises as `dead_letters`."""
    with opened(settings) as store:
        found = store.job(operation_id, step)
    return found if found is not None and found.state is State.DEAD else None


def plan(settings: Settings, wanted: Filter) -> Plan:
    """What a replay of those would do; changes nothing. Raises as `dead_letters`."""
    with opened(settings) as store:
        now = store.snapshot()
        return plan_of(
            Desk(store).deaths(now.now_ms - wanted.since_ms if wanted.since_ms else 0), wanted, now
        )


def replay_one(settings: Settings, operation_id: str, step: str, who: Actor) -> Result | None:
    """Send one dead letter back to its line; None if no dead job has that name. Raises as `dead_letters`."""
    with opened(settings) as store:
        desk = Desk(store)
        found = desk.death(operation_id, step)
        if found is None:
            return None
        return run(desk, [found], who, {"operation": operation_id, "step": step}, Pace(), _nobody)


def replay(
    settings: Settings, wanted: Plan, who: Actor, pace: Pace, progress: Progress | None = None
) -> Result:
    """Send back what the plan has, tenants in turn, until it is done or there is no more room.

    Each one is looked at again: what was replayed or discarded since, or has died anew, stays as it is.
    progress: called after each batch. Raises as `dead_letters`; what was done until then is done, and audited.
    """
    with opened(settings) as store:
        return run(Desk(store), wanted.deaths, who, wanted.wanted.as_dict(), pace, progress or _nobody)


def audit(settings: Settings, most: int = 50) -> tuple[AuditLine, ...]:
    """What people changed, the latest first. Raises as `dead_letters`."""
    with opened(settings) as store:
        return Desk(store).audit(most)


def _nobody(done: int, of: int, words: Mapping[str, int] | Counter[str]) -> None:
    """Nobody wants to know."""
