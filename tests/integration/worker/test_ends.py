"""However an attempt ends: one body, one outcome, the right kind and reason, no lease left, and the worker goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.integration.worker.stage import TASKS, Stage, detail

from tidegate.domain.states import Reason, State

PREFIX = f"{TASKS}."

#: how -> (reason, class in the detail); everything here is a failed attempt
FAILURES: dict[str, tuple[Reason, str]] = {
    "boom": (Reason.ERROR, "ValueError"),
    "oserror": (Reason.ERROR, "ConnectionRefusedError"),
    "unpicklable": (Reason.ERROR, f"{PREFIX}Shouting"),
    "retry": (Reason.RETRY_REQUESTED, "ValueError"),
    "retry_changed": (Reason.ERROR, "tidegate.worker.task.RetryWithChanges"),
    "reject": (Reason.REJECTED, "celery.exceptions.Reject"),
    "reject_requeue": (Reason.REJECTED, "celery.exceptions.Reject"),
    "memory": (Reason.MEMORY, "MemoryError"),
    "badresult": (Reason.ERROR, "tidegate.worker.serializer.NotJson"),
}


def settled(stage: Stage, job: str, state: State) -> Any:
    """The record of a job that is over in `state`, its one body and its lease gone."""
    view = stage.wait_state(job, state)
    assert stage.begun(job) == 1
    stage.wait_idle()
    return view


def test_ok(each_pool: Stage) -> None:
    sent = each_pool.run("end", "ok")
    assert sent.result.get(timeout=20) == sent.job
    settled(each_pool, sent.job, State.SUCCEEDED)


@pytest.mark.parametrize("how", FAILURES)
def test_failures(each_pool: Stage, how: str) -> None:
    sent = each_pool.run("end", how)
    view = settled(each_pool, sent.job, State.FAILED)
    reason, kind = FAILURES[how]
    assert view.reason == reason.value
    assert detail(view)["class"] == kind
    each_pool.wait(lambda: sent.result.state == "RETRY", "a result that may change")
    assert view.charged in (0, 1)


def test_ignore_is_settled(each_pool: Stage) -> None:
    sent = each_pool.run("end", "ignore")
    settled(each_pool, sent.job, State.SUCCEEDED)
    assert sent.result.state == "PENDING"


def test_sys_exit(each_pool: Stage) -> None:
    sent = each_pool.run("end", "exit")
    view = settled(each_pool, sent.job, State.FAILED)
    assert view.reason == Reason.WORKER_LOST.value
    each_pool.wait(lambda: sent.result.state == "RETRY", "a result that may change")


def test_the_detail_says_what_the_authority_needs(each_pool: Stage) -> None:
    sent = each_pool.run("end", "oserror")
    found = detail(settled(each_pool, sent.job, State.FAILED))
    assert found["error_code"] == "ECONNREFUSED"
    assert "fleet_tasks.py" in found["traceback"]
    before = time.time() * 1000
    sent = each_pool.run("end", "retry")
    found = detail(settled(each_pool, sent.job, State.FAILED))
    assert found["message"] == "later"
    assert before + 55_000 < found["not_before_ms"] < before + 75_000


def test_autoretry_publishes_nothing(each_pool: Stage) -> None:
    sent = each_pool.run("auto")
    view = settled(each_pool, sent.job, State.FAILED)
    assert view.reason == Reason.RETRY_REQUESTED.value
    assert detail(view)["class"] == "KeyError"


def test_wrong_arguments(each_pool: Stage) -> None:
    sent = each_pool.send("add", 1, 2, 3)
    view = each_pool.wait_state(sent.job, State.FAILED)
    assert detail(view)["class"] == "TypeError"
    each_pool.wait_idle()


def test_a_task_revoked_before_it_starts_is_cancelled(each_pool: Stage) -> None:
    sent = each_pool.run("end", "ok", countdown=1)
    each_pool.app.control.revoke(sent.result.id, reply=True, timeout=2)
    each_pool.wait_state(sent.job, State.CANCELLED)
    assert each_pool.begun(sent.job) == 0
    each_pool.wait(lambda: sent.result.state == "REVOKED", "the result")
    each_pool.wait_idle()


class TestChildren:
    """Ends that need a process of their own."""

    def test_soft_time_limit(self, stage: Stage) -> None:
        sent = stage.run("soft")
        view = settled(stage, sent.job, State.FAILED)
        assert view.reason == Reason.SOFT_TIMEOUT.value
        assert sent.result.state == "RETRY"

    def test_hard_time_limit(self, stage: Stage) -> None:
        sent = stage.run("hard")
        view = settled(stage, sent.job, State.FAILED)
        assert view.reason == Reason.ATTEMPT_TIMEOUT.value
        stage.wait(lambda: sent.result.state == "RETRY", "the result")

    def test_a_time_limit_of_one_send(self, stage: Stage) -> None:
        sent = stage.run("end", "sleep", time_limit=1)
        view = settled(stage, sent.job, State.FAILED)
        assert view.reason == Reason.ATTEMPT_TIMEOUT.value

    def test_a_deadline_ends_the_body(self, stage: Stage) -> None:
        begun = time.monotonic()
        sent = stage.run("end", "sleep", deadline=2)
        view = settled(stage, sent.job, State.FAILED)
        assert view.reason == Reason.ATTEMPT_TIMEOUT.value
        assert 1.5 < time.monotonic() - begun < 15

    def test_a_killed_child(self, stage: Stage) -> None:
        sent = stage.run("end", "killed")
        view = settled(stage, sent.job, State.FAILED)
        assert view.reason == Reason.WORKER_LOST.value
        stage.wait(lambda: sent.result.state == "RETRY", "the result")

    def test_terminated(self, stage: Stage) -> None:
        sent = stage.run("end", "sleep")
        stage.wait_begun(sent.job)
        stage.app.control.revoke(sent.result.id, terminate=True, signal="SIGKILL")
        settled(stage, sent.job, State.CANCELLED)
        stage.wait(lambda: sent.result.state == "REVOKED", "the result")

    def test_a_body_that_ignores_the_signal_ends_as_it_ends(self, stage: Stage) -> None:
        sent = stage.run("stubborn", 1.5)
        stage.wait_begun(sent.job)
        stage.app.control.revoke(sent.result.id, terminate=True, signal="SIGTERM")
        assert sent.result.get(timeout=20) == sent.job
        settled(stage, sent.job, State.SUCCEEDED)
