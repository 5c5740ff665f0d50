"""Whose job is it? One answer per message, from everything that may say so. Pure: time and chance are arguments.

Sources, first one wins: the call itself (option or header), `tidegate.context(...)`, the running task that publishes
(tenant, operation, deadline and the fire it began with are inherited, an idempotency key never is), the default tenant.

A publish from inside a running task is the *continuation* of an admitted canvas if the running task carries its id
(next step of a chain, callback, chord body) or if it replaces the task; the store never refuses those and knows them
again. Everything else that a task sends is an ordinary publish: Celery gives every one of them a `parent_id`, so
that is no sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tidegate.config import TaskSettings
from tidegate.domain.header import HEADER, JobHeader
from tidegate.domain.identity import group_operation_id, step_of, uuid7
from tidegate.transport.publish import DEFAULT_TENANT
from tidegate.worker import canvas
from tidegate.worker.said import NOTHING, Said


def identify(
    *,
    fleet: str,
    call: Said,
    around: Said,
    task: TaskSettings,
    headers: Mapping[str, Any],
    body: Any,
    running: Any,
    now_ms: int,
    chance: bytes,
) -> JobHeader:
    """The header of one message.

    call: what the call says; around: what the contexts around it say; task: what is said about the task;
    headers, body: of the message (Celery's protocol 2); running: Celery's context of the task that publishes, or None.
    """
    parent = inherited(running)
    embed = body[2] if isinstance(body, tuple) and len(body) == 3 else {}
    task_id, nesting = str(headers.get("id") or ""), int(headers.get("replaced_task_nesting") or 0)
    group = canvas.outermost_group(headers.get("group"), embed)
    lone = group is None and not canvas.is_canvas(embed)
    operation_id, own = _operation(fleet, call, around, parent, group) or (uuid7(now_ms, chance), True)
    deadline = call.deadline or around.deadline or 0
    same: Mapping[str, Any] = parent if operation_id == parent.get("operation_id") else {}
    if older := same.get("deadline"):
        deadline = min(deadline or older, older)
    queue_timeout = call.queue_timeout or around.queue_timeout
    if queue_timeout is None and not headers.get("expires"):
        queue_timeout = milliseconds(task.timeouts.queue)
    return JobHeader(
        tenant=call.tenant or around.tenant or parent.get("tenant") or DEFAULT_TENANT,
        operation_id=operation_id,
        # only a lone job in an operation of its own has the empty step
        step="" if own and lone else step_of(task_id, nesting),
        deadline=deadline,
        queue_timeout=queue_timeout or 0,
        attempt_timeout=milliseconds(task.timeouts.attempt),
        priority=call.priority or around.priority or "",
        key=call.idempotency_key or "",
        effect=task.effect.value if task.effect else "",
        resources=call.resources or (),
        cost=call.cost,
        continuation=running is not None and _continues(running, task_id, nesting),
        known=call.operation_id is not None,
        schedule=same.get("schedule", ""),
        logical_fire_time=same.get("logical_fire_time", ""),
    )


def inherited(running: Any) -> Mapping[str, Any]:
    """The header of the task that publishes; empty outside of tasks and in tasks that Tidegate did not deliver."""
    parent = getattr(running, HEADER, None) if running is not None else None
    return parent if isinstance(parent, Mapping) else {}


def stamped(headers: Mapping[str, Any], now_ms: int) -> Said:
    """What `sig.stamp(tenant=...)` says. Celery makes a list of one of each value."""
    stamps = headers.get("stamps")
    if not stamps or not isinstance(stamps, Mapping):
        return NOTHING
    single = {
        name: value[0] if isinstance(value, list) and value else value for name, value in stamps.items()
    }
    return Said.read({name: single.get(name) for name in ("tenant", "operation_id", "deadline")}, now_ms)


def milliseconds(seconds: float | None) -> int:
    """0 for none and for infinity."""
    return round(seconds * 1000) if seconds and math.isfinite(seconds) else 0


def _operation(
    fleet: str, call: Said, around: Said, parent: Mapping[str, Any], group: str | None
) -> tuple[str, bool] | None:
    """(operation id, whether it is this call's own); None if nothing names one."""
    if call.operation_id:
        return call.operation_id, True
    if around.operation_id:
        return around.operation_id, False
    if parent.get("operation_id"):
        return str(parent["operation_id"]), False
    return (group_operation_id(fleet, group), False) if group is not None else None


def _continues(running: Any, task_id: str, nesting: int) -> bool:
    replaces = nesting > int(getattr(running, "replaced_task_nesting", 0) or 0)
    return replaces or task_id in canvas.frozen_ids(running)
