"""Whose job it is: every source, in its order, for one message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.config import TaskSettings, TimeoutSettings
from tidegate.domain.header import JobHeader
from tidegate.domain.identity import group_operation_id
from tidegate.domain.job import Effect
from tidegate.worker.identify import identify, stamped
from tidegate.worker.said import NOTHING, Said

NOW_MS = 1_000_000
STEP = {"task": "t", "options": {"task_id": "next"}}


def running(**more: Any) -> Any:
    """Celery's context of a task that Tidegate delivered."""
    header = {"tenant": "parent", "operation_id": "parent-op", "deadline": 5_000_000, "attempt": 1}
    rest = {"replaced_task_nesting": 0, "callbacks": None, "errbacks": None, "chain": None, "chord": None}
    return SimpleNamespace(**({"tidegate": header} | rest | more))


def ask(
    call: Said = NOTHING,
    around: Said = NOTHING,
    task: TaskSettings | None = None,
    embed: dict[str, Any] | None = None,
    parent: Any = None,
    **headers: Any,
) -> JobHeader:
    return identify(
        fleet="f",
        call=call,
        around=around,
        task=task or TaskSettings(),
        headers={"id": "i", "task": "t", **headers},
        body=((), {}, embed or {}),
        running=parent,
        now_ms=NOW_MS,
        chance=bytes(10),
    )


def test_nobody_says_anything() -> None:
    header = ask()
    assert header == JobHeader(tenant="default", operation_id=header.operation_id)
    assert header.operation_id.startswith("0000000f-4240-7")  # 1,000,000 ms


def test_tenant_call_then_context_then_parent_then_default() -> None:
    call, around = Said(tenant="call"), Said(tenant="around")
    assert ask(call, around, parent=running()).tenant == "call"
    assert ask(around=around, parent=running()).tenant == "around"
    assert ask(parent=running()).tenant == "parent"
    assert ask(parent=SimpleNamespace(tidegate=None, replaced_task_nesting=0)).tenant == "default"


def test_operation_call_then_context_then_parent_then_group_then_fresh() -> None:
    call, around = Said(operation_id="call"), Said(operation_id="around")
    assert ask(call, around, parent=running()).operation_id == "call"
    assert ask(around=around, parent=running()).operation_id == "around"
    assert ask(parent=running(), group="g").operation_id == "parent-op"
    assert ask(group="g").operation_id == group_operation_id("f", "g")


@pytest.mark.parametrize(
    ("said", "step", "known"),
    [
        ({}, "", False),
        ({"call": Said(operation_id="o")}, "", True),
        ({"around": Said(operation_id="o")}, "i", False),
        ({"parent": running()}, "i", False),
        ({"group": "g"}, "i", False),
        ({"embed": {"chain": [STEP]}}, "i", False),
        ({"call": Said(operation_id="o"), "embed": {"chain": [STEP]}}, "i", True),
        ({"call": Said(operation_id="o"), "group": "g"}, "i", True),
        ({"call": Said(operation_id="o"), "parent": running()}, "", True),
    ],
)
def test_only_a_lone_job_in_an_operation_of_its_own_has_the_empty_step(
    said: dict[str, Any], step: str, known: bool
) -> None:
    header = ask(**said)
    assert (header.step, header.known) == (step, known)


@pytest.mark.parametrize(
    ("parent", "task_id", "nesting", "continues"),
    [
        (None, "next", 0, False),
        (running(), "i", 0, False),  # a task that sends a task: an ordinary publish
        (running(chain=[STEP]), "next", 0, True),
        (running(callbacks=[STEP]), "next", 0, True),
        (running(errbacks=[STEP]), "next", 0, True),
        (running(chord=STEP), "next", 0, True),
        (running(chord={"task": "b", "options": {}, "kwargs": {"tasks": [STEP]}}), "next", 0, True),
        (running(chain=[STEP]), "other", 0, False),
        (running(), "i", 1, True),  # replaces it
        (running(replaced_task_nesting=1), "i", 1, False),
        (running(replaced_task_nesting=1), "i", 2, True),
        # a payload that only looks like a signature makes nothing a continuation
        (
            running(chain=[{"task": "x", "options": {}, "args": [{"options": {"task_id": "next"}}]}]),
            "next",
            0,
            False,
        ),
    ],
)
def test_continuations(parent: Any, task_id: str, nesting: int, continues: bool) -> None:
    header = ask(parent=parent, id=task_id, replaced_task_nesting=nesting)
    assert header.continuation is continues


def test_a_replaced_step_has_a_name_of_its_own() -> None:
    assert ask(parent=running(), replaced_task_nesting=1).step == "i:1"


def test_the_key_is_never_inherited() -> None:
    parent = running()
    parent.tidegate["key"] = "k"
    assert ask(parent=parent).key == ""
    assert ask(around=Said(idempotency_key="k")).key == ""
    assert ask(Said(idempotency_key="k")).key == "k"


@pytest.mark.parametrize(
    ("call", "around", "parent", "deadline"),
    [
        (Said(), Said(), None, 0),
        (Said(deadline=7), Said(deadline=9), None, 7),
        (Said(), Said(deadline=9), None, 9),
        (Said(), Said(), running(), 5_000_000),
        (Said(deadline=4_000_000), Said(), running(), 4_000_000),
        (Said(deadline=6_000_000), Said(), running(), 5_000_000),  # a later step cannot outlive the operation
        (Said(operation_id="other"), Said(), running(), 0),  # another operation has its own time
        (Said(operation_id="other", deadline=6_000_000), Said(), running(), 6_000_000),
    ],
)
def test_deadline(call: Said, around: Said, parent: Any, deadline: int) -> None:
    assert ask(call, around, parent=parent).deadline == deadline


def test_timeouts_and_effect_of_the_task() -> None:
    task = TaskSettings(effect=Effect.NONE, timeouts=TimeoutSettings(queue=9.0, attempt=5.0))
    header = ask(task=task)
    assert (header.queue_timeout, header.attempt_timeout, header.effect) == (9_000, 5_000, "none")
    assert ask(Said(queue_timeout=3), task=task).queue_timeout == 3
    assert ask(around=Said(queue_timeout=4), task=task).queue_timeout == 4
    assert ask(task=task, expires="2026-03-08T09:00:00+00:00").queue_timeout == 0
    assert ask(task=TaskSettings(timeouts=TimeoutSettings(queue=float("inf")))).queue_timeout == 0


def test_stamps_are_a_source() -> None:
    found = stamped({"stamps": {"tenant": ["acme"], "operation_id": "op", "other": [1]}}, NOW_MS)
    assert found == Said(tenant="acme", operation_id="op")
    assert stamped({"stamps": {}}, NOW_MS) is stamped({}, NOW_MS) is NOTHING
