"""From the stored bytes of a claimed job to the kombu message that Celery sees at this delivery. Pure: no I/O.

A message is rewritten at each delivery (found by reading what Celery 5.7's worker takes from it): the delivery tag
names the attempt, `retries` is what the store has charged, `eta` and `expires` are gone because the store has
already decided both by its own clock, and the time limit is the shortest of what the message, the job and its
deadline allow (the header *replaces* a task's own limit in Celery, it does not narrow it).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidegate.domain.header import HEADER, delivery_header
from tidegate.domain.job import ClaimedJob
from tidegate.domain.states import Reason
from tidegate.transport.envelope import whole


class Undeliverable(Exception):
    """These bytes can never become a message for any worker. `reason` is undecodable or invalid_message."""

    def __init__(self, reason: Reason, text: str) -> None:
        self.reason, self.text = reason, text
        super().__init__(text)


def decode(envelope: bytes) -> dict[str, Any]:
    """The kombu message in a stored envelope, with a shape that Celery can take. Raises Undeliverable.

    Both of Celery's message protocols pass: 2 has the task's name and id in the headers, 1 in the body.
    """
    try:
        message = json.loads(envelope)
    except ValueError as error:  # UnicodeDecodeError is one too
        raise Undeliverable(Reason.UNDECODABLE, f"not JSON: {error}") from error
    except RecursionError as error:
        raise Undeliverable(Reason.UNDECODABLE, "nested too deeply") from error
    if not isinstance(message, dict):
        raise Undeliverable(Reason.INVALID_MESSAGE, f"a JSON {type(message).__name__}, not a message")
    message = whole(message)
    for name, kinds in _SHAPE.items():
        if not isinstance(message.get(name), kinds):
            raise Undeliverable(Reason.INVALID_MESSAGE, f"{name!r} is missing or of the wrong type")
    headers = message["headers"]
    if "task" in headers and not (isinstance(headers["task"], str) and isinstance(headers.get("id"), str)):
        raise Undeliverable(Reason.INVALID_MESSAGE, "the headers name a task but no id, or not as text")
    return message


_SHAPE: dict[str, type | tuple[type, ...]] = {
    "body": str,
    "headers": dict,
    "properties": dict,
    "content-type": str,
    "content-encoding": (str, type(None)),
}


def prepare(message: dict[str, Any], job: ClaimedJob, now_ms: int) -> dict[str, Any]:
    """Rewrite `message` (in place; it is ours) for this attempt. now_ms: the server's clock."""
    headers, properties = message["headers"], message["properties"]
    header = headers.get(HEADER)
    headers[HEADER] = {**(header if isinstance(header, dict) else {}), **delivery_header(job)}
    headers["retries"] = job.charged
    headers["eta"] = headers["expires"] = None
    headers["timelimit"] = time_limit(headers.get("timelimit"), job, now_ms)
    properties["delivery_tag"] = str(job.ref)
    where = properties.get("delivery_info")
    if not isinstance(where, dict):
        properties["delivery_info"] = where = {"exchange": "", "routing_key": job.queue}
    # Celery then looks whether an earlier attempt stored its success. Worth one read where one may have run without
    # a report: it crashed, or it was not charged (given back, or its lease ended before the first heartbeat)
    where["redelivered"] = job.crashes > 0 or job.attempt > job.charged + 1
    return message


def time_limit(limit: object, job: ClaimedJob, now_ms: int) -> list[float | None]:
    """[hard, soft] in seconds: the least of the message's, the attempt's and the time to the deadline."""
    hard, soft = _pair(limit)
    bounds = [hard]
    if job.attempt_timeout_ms:
        bounds.append(job.attempt_timeout_ms / 1000)
    if job.deadline_ms:
        # never 0: Celery reads that as "no limit"
        bounds.append(max(job.deadline_ms - now_ms, 1) / 1000)
    least = min((bound for bound in bounds if bound is not None), default=None)
    if soft is not None and least is not None and soft >= least:
        soft = None
    return [least, soft]


def _pair(limit: object) -> tuple[float | None, float | None]:
    if isinstance(limit, list | tuple) and len(limit) == 2:
        return _seconds(limit[0]), _seconds(limit[1])
    return None, None


def _seconds(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def task_of(message: Mapping[str, Any]) -> str:
    """The task's name, or an empty text for a message of protocol 1."""
    return str(message["headers"].get("task", ""))
