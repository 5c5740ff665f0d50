"""`tidegate dlq replay`: what died is mended and goes back, by real processes from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from celery import states
from tests.integration.beat.test_dlq import tidegate
from tests.integration.beat.test_results import settled
from tests.integration.beat.test_retries import TIDEGATE, beat
from tests.integration.worker.stage import MakeStage, Stage

from tidegate.domain.states import State

NO_RETRY = f'[tasks."{Stage.task("mended")}".retry]\nmax_retries = 0'


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A fleet whose jobs die at their first failure."""
    stage = make_stage(more=NO_RETRY)
    stage.worker()
    beat(stage)
    return stage


def shown(stage: Stage, *name: str) -> dict[str, Any]:
    code, text = tidegate(stage, "dlq", "show", *name, "--json")
    assert code == 0, text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_dead_letter_that_dies_again_and_then_succeeds(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "mended"
    sent = stage.run("mended", str(path), 7, link_error=[stage.s("mourn_here", "grief")])
    assert len(settled(stage, "grief", 1)) == 1
    assert sent.result.state == states.FAILURE
    letter = stage.store.dead_letters(1)[1][0].job
    name = (letter.operation_id, "--step", letter.step)

    code, text = tidegate(stage, "dlq", "replay", *name, "--by", "ann", "--reason", "site is back")
    assert (code, text) == (0, "1 of 1 replayed, 0 left\n")
    assert len(settled(stage, "grief", 2)) == 2, "the second death is told too"
    entry = shown(stage, *name)
    assert (entry["generation"], entry["attempts"], entry["charged"]) == (1, 2, 1)
    first, replay, second = entry["tries"]
    assert (first["n"], first["class"], second["n"]) == (1, "ConnectionError", 2)
    assert (replay["by"], replay["reason"]) == ("ann", "site is back")

    path.touch()
    code, _ = tidegate(stage, "dlq", "replay", *name, "--by", "ann")
    assert code == 0
    stage.wait(lambda: stage.store.state(letter.operation_id, letter.step) is State.SUCCEEDED, "its success")
    assert stage.app.AsyncResult(sent.result.id).get(timeout=10) == 7
    assert stage.begun(sent.job) == 3
    assert len(settled(stage, "grief", 2)) == 2

    code, text = tidegate(stage, "dlq", "audit", "--json")
    lines = json.loads(text)["audit"]
    assert [(line["by"], line["command"], line["count"], line["reason"]) for line in lines] == [
        ("ann", "dlq replay", 1, ""),
        ("ann", "dlq replay", 1, "site is back"),
    ]
    code, text = tidegate(stage, "dlq", "replay", *name)
    assert (code, "no dead letter of operation" in text) == (1, True)


def test_a_plan_changes_nothing_and_a_walk_that_is_killed_goes_on_where_it_was(
    stage: Stage, tmp_path: Path
) -> None:
    path = tmp_path / "mended"
    sent = [stage.run("mended", str(path), 7) for _ in range(20)]
    for n in range(10):
        stage.app.send_task(Stage.task("mended"), (f"other-{n}", str(path)), headers={"tenant": "other"})
    stage.wait(lambda: stage.counts().dead == 30, "thirty dead letters")
    stage.wait_idle()
    path.touch()

    code, text = tidegate(stage, "dlq", "replay", "--all")
    assert code == 0
    assert "30 dead letters match" in text
    assert "by tenant  default 20, other 10" in text
    assert stage.counts().dead == 30

    walk = stage.processes.spawn(
        [*TIDEGATE, "dlq", "replay", "--all", "--apply", "--rate", "10", "--config", str(stage.config)],
        name="walk",
    )
    stage.wait(lambda: stage.counts().dead <= 20, "some of them to be replayed")
    walk.kill9()
    code, text = tidegate(stage, "dlq", "replay", "--tenant", "other", "--apply", "--json")
    others = json.loads(text.splitlines()[0])  # progress follows
    assert (code, others["left"], others["refused"]) == (0, 0, {})
    code, text = tidegate(stage, "dlq", "replay", "--died-of", "max_retries", "--task", "*.mended", "--apply")
    assert code == 0
    stage.wait(lambda: (stage.counts().dead, stage.counts().depth) == (0, 0), "all of them to be done")
    assert [stage.begun(one.job) for one in sent] == [2] * 20
    assert [stage.begun(f"other-{n}") for n in range(10)] == [2] * 10
    code, text = tidegate(stage, "dlq", "audit", "--json")
    assert sum(line["count"] for line in json.loads(text)["audit"]) == 30
    assert tidegate(stage, "dlq", "replay", "--all", "--apply")[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name one OPERATION, or say --all, or use filters"),
        (["op", "--all"], "name one OPERATION, or say --all, or use filters"),
        (["--all", "--tenant", "t"], "name one OPERATION, or say --all, or use filters"),
        (["--since", "soon"], "--since"),
        (["--all", "--rate", "0"], "--rate"),
    ],
)
def test_what_cannot_be_meant(make_stage: MakeStage, words: list[str], said: str) -> None:
    code, text = tidegate(make_stage(), "dlq", "replay", *words)
    assert (code, bool(re.search(re.escape(said), text))) == (2, True)
