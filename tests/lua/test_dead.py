"""dead: dead letters in pages, the latest first, each whole."""

from __future__ import annotations

from tests.lua.rig import Rig, outcome

from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason, State


def test_pages_of_dead_letters(rig: Rig) -> None:
    for name in ("a", "b", "c"):
        rig.put(name, envelope=name.encode())
        rig.store.settle(
            [outcome(rig.one(), OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK, '{"message": "no"}')], "w1"
        )
        rig.tick(1_000)
    total, (latest, second) = rig.store.dead_letters(2)
    assert (total, latest.job.operation_id, second.job.operation_id) == (3, "c", "b")
    assert (latest.died_ms, second.died_ms) == (rig.now - 1_000, rig.now - 2_000)
    assert (latest.job.state, latest.job.reason, latest.job.detail, latest.job.envelope) == (
        State.DEAD,
        "unknown_task",
        '{"message": "no"}',
        b"c",
    )
    total, rest = rig.store.dead_letters(2, 2)
    assert (total, [letter.job.operation_id for letter in rest]) == (3, ["a"])


def test_an_empty_desk(rig: Rig) -> None:
    assert rig.store.dead_letters() == (0, ())
