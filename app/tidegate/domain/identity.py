"""Who a job is: operation ids, task ids of keyed sends, and the canonical form of what they are made from.

A key made of several fields is a JSON array in canonical form, never strings joined with a separator, so that
("a:b", "c") and ("a", "b:c") stay different (DESIGN §1).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

from tidegate.domain.errors import InvalidJob
from tidegate.domain.names import checked_name

#: root of every id that is derived and not drawn; changing it changes all of them
NAMESPACE = UUID("6f5e1c52-6f0a-5d1e-9d6b-0d2f5a8c7e41")

KeyPart = str | int | bool | None
Key = str | Sequence[KeyPart]


def canonical(value: Any) -> str:
    """JSON in one spelling: keys sorted, no spaces, no escapes that are not needed.

    Raises TypeError or ValueError for what JSON cannot carry.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def derived(fleet: str, kind: str, *fields: Any) -> str:
    """The uuid5 of `fields` in this fleet; `kind` keeps ids of different meaning apart."""
    return str(uuid5(NAMESPACE, canonical([fleet, kind, *fields])))


def uuid7(now_ms: int, chance: bytes) -> str:
    """A version 7 UUID (RFC 9562 §5.7) from a time in milliseconds and 10 random bytes: sorts by time of creation."""
    if len(chance) != 10:
        raise ValueError(f"10 random bytes are needed, got {len(chance)}")
    number = (now_ms & (1 << 48) - 1) << 80 | int.from_bytes(chance, "big")
    number = number & ~(0xF << 76) | 0x7 << 76  # version
    number = number & ~(0x3 << 62) | 0x2 << 62  # variant
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def key_text(key: object, where: str = "idempotency_key") -> str:
    """The stored form of an idempotency key: text as it is, several fields as a canonical JSON array.

    Raises InvalidJob for anything else, and for more than 256 bytes.
    """
    if isinstance(key, list | tuple):
        for index, part in enumerate(key):
            if part is not None and not isinstance(part, str | int):
                raise InvalidJob(
                    f"of type {type(part).__name__}",
                    f"{where}[{index}]",
                    "text, a whole number, true, false or null",
                )
        key = canonical(list(key))
    return checked_name(key, where)


def keyed_task_id(fleet: str, tenant: str, task: str, key: str) -> str:
    """Task id of a keyed send: the same key gives the same id, so a duplicate's AsyncResult resolves."""
    return derived(fleet, "task", tenant, task, key)


def operation_task_id(fleet: str, operation_id: str) -> str:
    """Task id of a lone job whose operation the caller named: sent twice it is one job, with one result."""
    return derived(fleet, "operation", operation_id)


def fire_operation_id(fleet: str, schedule_id: str, logical_time: str) -> str:
    """The operation of a fire (DESIGN §1): the same from every emitter, and from a store that was built again.

    logical_time: in UTC with milliseconds (`domain.fire.utc_text`), so that neither the zone in which a schedule is
    written nor a new edition of the zones gives one fire two names.
    """
    return derived(fleet, "fire", schedule_id, logical_time)


def group_operation_id(fleet: str, group_id: str) -> str:
    """The operation that all members of a group or chord share which was published outside any operation."""
    return derived(fleet, "group", group_id)


def callback_task_id(parent_task_id: str, path: Sequence[str | int]) -> str:
    """Id of a callback that Celery leaves without one.

    Fixed by its parent and its place, so that a parent that runs again publishes the same id again.
    """
    return derived("", "callback", parent_task_id, *path)


def step_of(task_id: str, nesting: int = 0) -> str:
    """Name of a step within its operation: the frozen task id, and how often `replace` has re-used it."""
    return f"{task_id}:{nesting}" if nesting else task_id
