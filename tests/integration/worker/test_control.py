"""Remote control and inspection, each command with its effect."""

from __future__ import annotations

from typing import Any

import pytest
from tests.harness.processes import Proc
from tests.integration.worker.stage import TASKS, MakeStage, Stage

from tidegate.domain.states import State


@pytest.fixture(scope="module")
def node(stage: Stage) -> str:
    """The name of the one worker."""
    (found,) = stage.app.control.ping(timeout=3, limit=1)
    return str(next(iter(found)))


def one(reply: Any, node: str) -> Any:
    """The answer of the one worker."""
    if isinstance(reply, list):
        (reply,) = reply
    assert list(reply) == [node]
    return reply[node]


def inspect(stage: Stage) -> Any:
    return stage.app.control.inspect(timeout=3, limit=1)


def test_ping(stage: Stage, node: str) -> None:
    assert one(stage.app.control.ping(timeout=3, limit=1), node) == {"ok": "pong"}
    assert one(inspect(stage).ping(), node) == {"ok": "pong"}


def test_active_and_reserved(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.worker("prefork", concurrency=1, prefetch=2)
    first, second = stage.run("nap", 5), stage.run("nap", 0)
    stage.wait_begun(first.job)
    stage.wait(lambda: stage.counts().running == 2, "both leases")

    def ids(jobs: Any) -> list[str]:
        (found,) = jobs.values()
        return [job["id"] for job in found]

    asked = inspect(stage)
    assert ids(asked.active()) == [first.result.id]
    assert ids(asked.reserved()) == [second.result.id]
    assert asked.query_task(second.result.id)


def test_scheduled_is_empty_because_the_store_keeps_them(stage: Stage, node: str) -> None:
    sent = stage.run("mark", countdown=30)
    assert one(inspect(stage).scheduled(), node) == []
    assert stage.state(sent.job) is State.DELAYED


def test_stats(stage: Stage, node: str) -> None:
    stage.send("add", 1, 1).result.get(timeout=20)
    stats = one(inspect(stage).stats(), node)
    assert stats["pool"]["max-concurrency"] == 2
    assert stats["total"][f"{TASKS}.add"] >= 1
    assert stats["prefetch_count"] == 2


def test_registered(stage: Stage, node: str) -> None:
    assert f"{TASKS}.add" in one(inspect(stage).registered(), node)


def test_active_queues_are_those_of_the_settings(stage: Stage, node: str) -> None:
    assert [queue["name"] for queue in one(inspect(stage).active_queues(), node)] == ["default"]


def test_revoke(stage: Stage, node: str) -> None:
    sent = stage.run("mark", countdown=1)
    assert "ok" in one(stage.app.control.revoke(sent.result.id, reply=True, timeout=3, limit=1), node)
    stage.wait_state(sent.job, State.CANCELLED)
    assert sent.result.id in one(inspect(stage).revoked(), node)
    assert stage.begun(sent.job) == 0


def test_revoke_and_terminate(stage: Stage, node: str) -> None:
    sent = stage.run("nap", 30)
    stage.wait_begun(sent.job)
    stage.app.control.revoke(sent.result.id, terminate=True, reply=True, timeout=3, limit=1)
    stage.wait_state(sent.job, State.CANCELLED)
    stage.wait_idle()


def test_pool_grow_and_shrink(stage: Stage, node: str) -> None:
    control = stage.app.control
    assert "ok" in one(control.pool_grow(2, reply=True, timeout=5, limit=1), node)
    # Celery makes the new children when it next looks after its pool
    stage.wait(lambda: len(one(inspect(stage).stats(), node)["pool"]["processes"]) == 4, "four children")
    sent = [stage.run("nap", 3) for _ in range(5)]
    stage.wait(lambda: stage.at_once(sent) == 4, "four at once")
    stage.wait_done(sent)
    assert "ok" in one(control.pool_shrink(2, reply=True, timeout=5, limit=1), node)
    sent = [stage.run("nap", 2) for _ in range(4)]
    stage.wait(lambda: stage.at_once(sent) == 2, "two at once")
    assert stage.counts().running == 2
    stage.wait_done(sent)


def test_add_and_cancel_consumer(stage: Stage, node: str) -> None:
    control = stage.app.control
    sent = stage.run("mark", queue="other")
    assert stage.counts("other").waiting == 1
    assert "ok" in one(control.add_consumer("other", reply=True, timeout=3, limit=1), node)
    stage.wait_state(sent.job, State.SUCCEEDED)
    assert "ok" in one(control.cancel_consumer("other", reply=True, timeout=3, limit=1), node)
    later = stage.run("mark", queue="other")
    stage.send("add", 1, 1).result.get(timeout=20)
    assert stage.state(later.job) is State.WAITING
    stage.app.control.add_consumer("other", reply=True, timeout=3, limit=1)
    stage.wait_state(later.job, State.SUCCEEDED)
    stage.app.control.cancel_consumer("other", reply=True, timeout=3, limit=1)


def test_a_queue_that_is_not_declared_is_not_consumed(stage: Stage, node: str) -> None:
    answer = one(stage.app.control.add_consumer("othr", reply=True, timeout=3, limit=1), node)
    assert "did you mean 'other'" in str(answer)
    assert one(inspect(stage).ping(), node) == {"ok": "pong"}


def test_shutdown_by_remote_control(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker: Proc = stage.worker("threads")
    sent = [stage.run("nap", 1) for _ in range(4)]
    stage.wait_begun(sent[0].job)
    stage.app.control.shutdown()
    assert worker.wait(20) == 0
    assert stage.counts().running == 0
    assert stage.book.count("end") == stage.book.count("begin") >= 1
    assert stage.store.snapshot().workers == ()
