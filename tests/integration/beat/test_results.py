"""What the callers of a dead job see: FAILURE, its errbacks once, its chord and the rest of its chain."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from celery import chain, chord, states
from tests.integration.beat.test_retries import beat, policy
from tests.integration.worker.stage import MakeStage, Stage

from tidegate.domain.errors import JobDead
from tidegate.domain.states import State


@pytest.fixture
def mortal(make_stage: MakeStage) -> Stage:
    """A fleet whose flaky jobs are given up after three attempts."""
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    beat(stage)
    return stage


def mourned(stage: Stage, job: str) -> list[Any]:
    return [note for note in stage.notes("mourned") if note["job"] == job]


def settled(stage: Stage, job: str, number: int) -> list[Any]:
    """The errbacks of `job`, once there are so many and everything else is done."""
    stage.wait(lambda: len(mourned(stage, job)) >= number, f"{number} errbacks of {job}")
    stage.wait_idle()
    return mourned(stage, job)


def test_a_dead_job_is_a_failure_with_its_error_and_both_kinds_of_errbacks_once(mortal: Stage) -> None:
    job = f"dead-{uuid.uuid4().hex[:6]}"
    lost = mortal.run("flaky", 99, link_error=[mortal.s("mourn"), mortal.s("mourn_here", job)])
    with pytest.raises(ValueError, match="attempt 3 of"):
        lost.result.get(timeout=20)
    assert lost.result.state == states.FAILURE
    assert "ValueError" in str(lost.result.traceback)
    (by_error,) = settled(mortal, job, 1)
    assert by_error["error"].startswith("ValueError: attempt 3 of")
    assert len(settled(mortal, lost.result.id, 1)) == 1


def test_the_rest_of_a_chain_fails_with_its_dead_member(mortal: Stage) -> None:
    job = f"chain-{uuid.uuid4().hex[:6]}"
    result = chain(mortal.s("flaky", job, 99), mortal.s("add", 3), app=mortal.app).apply_async(
        link_error=mortal.s("mourn_here", job)
    )
    with pytest.raises(ValueError, match="attempt 3"):
        result.get(timeout=20)
    assert result.parent.state == states.FAILURE
    assert len(settled(mortal, job, 1)) == 1


def test_a_chord_with_a_dead_member_raises_and_its_errback_is_called_once(mortal: Stage) -> None:
    job = f"chord-{uuid.uuid4().hex[:6]}"
    body = mortal.s("total").on_error(mortal.s("mourn_here", job))
    result = chord([mortal.s("flaky", job, 99), mortal.s("echo", 2)], body, app=mortal.app).apply_async()
    with pytest.raises(ValueError, match="attempt 3"):  # of the parent, which Celery looks at first
        result.get(timeout=20)
    (by_error,) = settled(mortal, job, 1)
    assert by_error["error"].startswith("ChordError: ")
    assert result.state == states.FAILURE


def test_a_job_that_waited_too_long_is_a_failure_too(make_stage: MakeStage) -> None:
    stage = make_stage()
    sent = stage.app.send_task(Stage.task("mark"), ("late",), headers={"operation_id": "late"}, expires=0.2)
    beat(stage)
    stage.wait_state("late", State.DEAD)
    stage.worker()
    with pytest.raises(JobDead, match="queue_timeout"):
        sent.get(timeout=20)
    assert stage.begun("late") == 0


def test_what_beat_could_not_tell_before_it_died_is_told_by_the_next(make_stage: MakeStage) -> None:
    stage = make_stage(more=policy("flaky"))
    worker = stage.worker()
    first = beat(stage)
    lost = stage.run("flaky", 99)
    stage.wait_state(lost.job, State.DEAD)
    first.kill9()
    worker.kill_family()
    stage.worker()
    beat(stage)
    with pytest.raises(ValueError, match="attempt 3"):
        lost.result.get(timeout=40)
