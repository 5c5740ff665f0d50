"""A worker and beat processes as users start them: failed attempts are tried again, or end as dead letters."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import pytest
from celery import chain, chord, states
from tests.harness.processes import Proc
from tests.integration.worker.stage import MakeStage, Stage, detail

from tidegate.domain.states import State

TIDEGATE = [str(Path(sys.executable).with_name("tidegate"))]


def policy(*tasks: str) -> str:
    return "\n".join(
        f'[tasks."{Stage.task(task)}".retry]\n'
        'kind = "fixed"\ninterval = "200ms"\njitter = "none"\nmax_retries = 2'
        for task in tasks
    )


def beat(stage: Stage) -> Proc:
    """`tidegate beat`, running."""
    proc = stage.processes.spawn(
        [*TIDEGATE, "beat", "--config", str(stage.config)],
        name=f"beat-{uuid.uuid4().hex[:6]}",
    )
    proc.wait_for_text("beat runs", 20)
    return proc


def test_a_failed_job_is_tried_again_and_its_result_says_so_until_it_is_decided(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    waits = stage.run("flaky", 2, 7)
    stage.wait_state(waits.job, State.FAILED)
    assert waits.result.state == states.RETRY
    beat(stage)
    assert waits.result.get(timeout=20) == 7
    assert stage.begun(waits.job) == 3
    assert stage.state(waits.job) is State.SUCCEEDED


def test_a_job_that_always_fails_is_a_dead_letter(make_stage: MakeStage) -> None:
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    beat(stage)
    lost = stage.run("flaky", 99)
    view = stage.wait_state(lost.job, State.DEAD)
    assert view is not None
    assert (view.reason, stage.begun(lost.job)) == ("max_retries", 3)
    assert (detail(view)["class"], detail(view)["last"]) == ("ValueError", "error")
    assert "attempt 3" in detail(view)["message"]


def test_a_canvas_with_a_member_that_is_tried_again_gives_its_result(make_stage: MakeStage) -> None:
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    beat(stage)
    job = f"canvas-{uuid.uuid4().hex[:6]}"
    in_chain = chain(stage.s("flaky", job, 1, 7), stage.s("add", 3), app=stage.app).apply_async()
    together = chord(
        [stage.s("flaky", job, 1, 1), stage.s("echo", 2), stage.s("echo", 3)], stage.s("total"), app=stage.app
    ).apply_async()
    assert in_chain.get(timeout=20) == 10
    assert together.get(timeout=20) == 6


def test_two_beats_and_one_that_is_killed(make_stage: MakeStage) -> None:
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    first, _ = beat(stage), beat(stage)
    sent = [stage.run("flaky", 1, n) for n in range(20)]
    first.kill9()
    stage.wait_done(sent)
    assert [stage.begun(one.job) for one in sent] == [2] * 20


@pytest.mark.parametrize("how", ["term", "int"])
def test_a_polite_stop(make_stage: MakeStage, how: str) -> None:
    stage = make_stage()
    proc = beat(stage)
    if how == "term":
        proc.term()
    else:
        proc.send(2)
    assert proc.wait(10) == 0


def test_a_store_that_is_away_for_a_while(make_stage: MakeStage) -> None:
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    proc = beat(stage)
    stage.server.stop()
    proc.wait_for_text("trying again", 10)
    stage.server.start()
    proc.wait_for_text("answers again", 20)
    sent = stage.run("flaky", 1, 5)
    assert sent.result.get(timeout=30) == 5


def test_what_the_code_says_reaches_beat_and_the_file_overrules_it(make_stage: MakeStage) -> None:
    stage = make_stage(more=f'[tasks."{Stage.task("doomed")}".retry]\nmax_retries = 0')
    stage.worker()
    beat(stage)
    sent = {name: stage.run(name) for name in ("celery_says", "decorator_says", "doomed")}
    for one in sent.values():
        stage.wait_state(one.job, State.DEAD)
    assert {name: stage.begun(one.job) for name, one in sent.items()} == {
        "celery_says": 2,
        "decorator_says": 1,
        "doomed": 1,
    }
