"""The stored form of a kombu message: what every message says alike, and what its job's record says, is left out.

Two thirds of a small message are such words. They would be stored, written to the append-only file, sent and parsed
for each job; here they are put back when the message is delivered. A message that was stored whole (by an earlier
release, or by somebody else) is read as well: only what is missing is put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.domain.header import HEADER

#: headers of Celery's protocol 2 as most messages have them
_HEADERS: Final[Mapping[str, Any]] = {
    "lang": "py",
    "shadow": None,
    "eta": None,
    "expires": None,
    "group": None,
    "group_index": None,
    "retries": 0,
    "timelimit": [None, None],
    "parent_id": None,
    "argsrepr": "()",
    "kwargsrepr": "{}",
    "ignore_result": False,
    "replaced_task_nesting": 0,
    "stamped_headers": None,
    "stamps": {},
    HEADER: {},
}
_PROPERTIES: Final[Mapping[str, Any]] = {
    "reply_to": "",
    "delivery_mode": 2,
    "priority": 0,
    "body_encoding": None,
}
_PARTS: Final[Mapping[str, Any]] = {
    "content-type": "application/x-tidegate+json",
    "content-encoding": "utf-8",
}
#: given anew at each delivery
_ANEW = frozenset({"delivery_tag"})


def slim(message: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be stored of a message of a task."""
    headers, properties = message["headers"], message["properties"]
    if "task" not in headers or "id" not in headers:
        return dict(message)  # protocol 1, or none of Celery's
    task_id = headers["id"]
    kept = {name: value for name, value in headers.items() if not _same(_HEADERS, name, value)}
    if kept.get("root_id") == task_id:
        del kept["root_id"]
    said = {
        name: value
        for name, value in properties.items()
        if name not in _ANEW and not _same(_PROPERTIES, name, value)
    }
    if said.get("correlation_id") == task_id:
        del said["correlation_id"]
    rest = {
        name: value
        for name, value in message.items()
        if name not in ("headers", "properties") and not _same(_PARTS, name, value)
    }
    return {**rest, "headers": kept, "properties": said} if said else {**rest, "headers": kept}


def whole(stored: dict[str, Any]) -> dict[str, Any]:
    """Inverse of `slim`, up to what a delivery gives anew; anything that is no message comes back as it is."""
    headers = stored.get("headers")
    if not isinstance(headers, dict) or "task" not in headers or "id" not in headers:
        return stored
    properties = stored.get("properties", {})
    if not isinstance(properties, dict):
        return stored
    task_id = headers["id"]
    return {
        **_PARTS,
        **stored,
        "headers": {**_HEADERS, "stamps": {}, "root_id": task_id, **headers},  # Celery may add to the stamps
        "properties": {**_PROPERTIES, "correlation_id": task_id, **properties},
    }


def _same(usual: Mapping[str, Any], name: str, value: Any) -> bool:
    if name not in usual:
        return False
    expected = usual[name]
    return type(value) is type(expected) and bool(value == expected)
