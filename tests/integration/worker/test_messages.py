"""Bytes that no worker can run end as dead letters, whole and with a reason, and the worker goes on."""

from __future__ import annotations

import base64
import json
import pickle
import uuid
from typing import Any

import pytest
from tests.integration.worker.stage import QUEUE, TASKS, Stage, detail

from tidegate.domain.job import NewJob
from tidegate.domain.states import Reason, State

OURS = "application/x-tidegate+json"


def message(body: str, content_type: str = OURS, encoding: str | None = None, **headers: Any) -> bytes:
    """A message as the transport stores it, unless told otherwise."""
    task_id = uuid.uuid4().hex
    whole = {
        "body": body,
        "content-type": content_type,
        "content-encoding": "utf-8",
        "headers": {"lang": "py", "task": f"{TASKS}.add", "id": task_id, "root_id": task_id, **headers},
        "properties": {
            "correlation_id": task_id,
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "delivery_tag": task_id,
            "body_encoding": encoding,
            "priority": 0,
        },
    }
    return json.dumps(whole).encode()


def body(*args: Any) -> str:
    return json.dumps([list(args), {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}])


PICKLED = base64.b64encode(pickle.dumps(((1, 2), {}, {}))).decode()
GOOD = message(body(1, 2))

LETTERS: dict[str, tuple[bytes, Reason]] = {
    "not json": (b"not json", Reason.UNDECODABLE),
    "a list": (b"[]", Reason.INVALID_MESSAGE),
    "null": (b"null", Reason.INVALID_MESSAGE),
    "a number": (b"1", Reason.INVALID_MESSAGE),
    "nothing": (b"", Reason.UNDECODABLE),
    "truncated": (GOOD[: len(GOOD) // 2], Reason.UNDECODABLE),
    "not utf-8": (b"\xff\xfe" + GOOD, Reason.UNDECODABLE),
    "nested too deeply": (b"[" * 100_000, Reason.UNDECODABLE),
    "no headers": (b'{"body": "", "properties": {}}', Reason.INVALID_MESSAGE),
    "headers of another type": (
        GOOD.replace(b'"headers": {', b'"headers": 3, "x": {'),
        Reason.INVALID_MESSAGE,
    ),
    "no id": (message(body(1, 2), id=None), Reason.INVALID_MESSAGE),
    "no task": (message(body(1, 2), task=None), Reason.INVALID_MESSAGE),
    "a body that is no list": (message('{"x": 1}'), Reason.INVALID_MESSAGE),
    "a body of two": (message("[[1, 2], {}]"), Reason.INVALID_MESSAGE),
    "a body that is not json": (message("[[1, 2"), Reason.UNDECODABLE),
    "an empty body": (message(""), Reason.INVALID_MESSAGE),
    "pickle": (message(PICKLED, "application/x-python-serialize", "base64"), Reason.UNDECODABLE),
    "an unknown content type": (message(body(1, 2), "application/x-other"), Reason.UNDECODABLE),
    "an unknown task": (message(body(1, 2), task="no.such.task"), Reason.UNKNOWN_TASK),
    "protocol 1 without a task": (
        json.dumps({**json.loads(GOOD), "headers": {}, "body": "{}"}).encode(),
        Reason.INVALID_MESSAGE,
    ),
}


def put(stage: Stage, envelope: bytes) -> str:
    """Straight into the queue, past every check of a producer."""
    job = f"raw-{uuid.uuid4().hex[:10]}"
    stage.store.enqueue([NewJob(QUEUE, "default", job, envelope)])
    return job


@pytest.mark.parametrize("name", LETTERS)
def test_dead_letters(each_pool: Stage, name: str) -> None:
    envelope, reason = LETTERS[name]
    job = put(each_pool, envelope)
    view = each_pool.wait_state(job, State.DEAD)
    assert view is not None
    assert view.envelope == envelope
    assert view.reason == reason.value
    assert detail(view)["message"]
    each_pool.wait_idle()


def test_the_worker_goes_on_between_them(each_pool: Stage) -> None:
    jobs = [put(each_pool, envelope) for envelope, _ in LETTERS.values()]
    results = [each_pool.send("add", n, n).result for n in range(5)]
    jobs += [put(each_pool, envelope) for envelope, _ in LETTERS.values()]
    assert [result.get(timeout=30) for result in results] == [0, 2, 4, 6, 8]
    for job in jobs:
        each_pool.wait_state(job, State.DEAD)


def test_a_whole_message_of_ours_runs(each_pool: Stage) -> None:
    job = put(each_pool, GOOD)
    each_pool.wait_state(job, State.SUCCEEDED)


def test_celerys_first_protocol_runs(each_pool: Stage) -> None:
    old = {"task": f"{TASKS}.add", "id": uuid.uuid4().hex, "args": [1, 2], "kwargs": {}, "retries": 0}
    whole = {**json.loads(GOOD), "headers": {}, "body": json.dumps(old), "content-type": "application/json"}
    job = put(each_pool, json.dumps(whole).encode())
    each_pool.wait_state(job, State.SUCCEEDED)
