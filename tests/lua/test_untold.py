"""untold: dead jobs whose results still have to be written, until somebody says that they are."""

from __future__ import annotations

from tests.lua.rig import Rig

from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason


def dead(rig: Rig, operation: str, **fields: object) -> str:
    """A job that is dead, and its id."""
    rig.put(operation, **fields)
    job = rig.one()
    rig.end(job, OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK)
    return job.ref.job_id


def test_a_dead_job_is_untold_until_it_is_told(rig: Rig) -> None:
    first = dead(rig, "a", step="s", tenant="t 1")
    rig.tick(5)
    second = dead(rig, "b")
    told, other = rig.store.untold()
    assert (told.job_id, told.operation_id, told.step, told.queue, told.tenant) == (
        first,
        "a",
        "s",
        "default",
        "t 1",
    )
    assert other.job_id == second
    assert [job.job_id for job in rig.store.untold(1)] == [first]
    assert [job.job_id for job in rig.store.untold(10, [first])] == [second]
    assert rig.store.untold(10, [second]) == ()


def test_every_way_to_die_is_told(rig: Rig) -> None:
    rig.put("late", queue_timeout_ms=100)
    rig.tick(100)
    rig.store.promote()
    assert [job.operation_id for job in rig.store.untold()] == ["late"]


def test_who_tells_of_a_death_has_nobody_to_tell_of_its_own(rig: Rig) -> None:
    dead(rig, "a", step="finalize-12")
    assert rig.store.untold() == ()


def test_a_job_that_is_gone_is_forgotten(rig: Rig) -> None:
    job_id = dead(rig, "a")
    name = f"{rig.store.key_prefix}job:{job_id}"
    rig.client.rename(name, f"{name}0")
    assert rig.store.untold() == ()
    rig.client.rename(f"{name}0", name)
    assert "untold" not in rig.dump()
