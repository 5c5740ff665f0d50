"""`tidegate dlq`: what an SRE sees of a job that died."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.integration.beat.test_retries import TIDEGATE, beat, policy
from tests.integration.worker.stage import MakeStage, Stage

from tidegate.domain.states import State

NO_CANVAS = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A fleet with one dead letter, and no worker nor beat any more."""
    stage = make_stage(more=policy("flaky"))
    stage.worker()
    beat(stage)
    stage.app.send_task(Stage.task("flaky"), ("dead", 99), headers={"operation_id": "op 1", "tenant": "acmé"})
    stage.wait_state("op 1", State.DEAD)
    stage.processes.close()
    return stage


def tidegate(stage: Stage, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [*TIDEGATE, *arguments, "--config", str(stage.config)], capture_output=True, text=True, timeout=30
    )
    return done.returncode, done.stdout + done.stderr


def test_a_dead_letter_is_listed_and_shown_whole(stage: Stage) -> None:
    code, text = tidegate(stage, "dlq", "list")
    assert code == 0
    assert "max_retries" in text
    assert "acmé" in text
    assert "1 of 1 dead letters" in text

    code, raw = tidegate(stage, "dlq", "list", "--json")
    listed: dict[str, Any] = json.loads(raw)
    (row,) = listed["dead_letters"]
    assert (code, listed["total"], row["operation"], row["attempts"], row["last"]) == (
        0,
        1,
        "op 1",
        3,
        "error",
    )
    assert row["class"] == "ValueError"

    code, text = tidegate(stage, "dlq", "show", "op 1")
    assert code == 0
    assert "Traceback" in text
    assert f'"body":{json.dumps(json.dumps([["dead", 99], {}, NO_CANVAS], separators=(",", ":")))}' in text
    assert text.count("attempt ") >= 3
    assert "): error ValueError attempt 1 of dead\n" in text

    code, text = tidegate(stage, "dlq", "show", "nobody")
    assert (code, "no dead letter of operation 'nobody'" in text) == (1, True)


def test_an_empty_desk(make_stage: MakeStage) -> None:
    code, text = tidegate(make_stage(), "dlq", "list")
    assert (code, text) == (1, "no dead letters\n")
