"""From stored bytes to the message of one attempt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate.domain.job import ClaimedJob, Effect, LeaseRef
from tidegate.domain.states import Reason
from tidegate.transport.delivery import Undeliverable, decode, prepare, time_limit

NOW = 1_700_000_000_000
JOB = ClaimedJob(
    ref=LeaseRef("7", 4294967297),
    queue="reports",
    tenant="acme",
    operation_id="op",
    step="s",
    task="t",
    task_id="id",
    attempt=3,
    charged=1,
    crashes=0,
    created_ms=0,
    eligible_ms=0,
    claimed_ms=NOW,
    deadline_ms=0,
    attempt_timeout_ms=0,
    effect=Effect.IDEMPOTENT,
    envelope=b"",
    record=b"",
)


def message(**headers: Any) -> dict[str, Any]:
    return {
        "body": "[[], {}, {}]",
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": "t", "id": "id", **headers},
        "properties": {"delivery_info": {"exchange": "", "routing_key": "reports"}, "delivery_tag": "old"},
    }


def job(**changes: Any) -> ClaimedJob:
    return JOB._replace(**changes)


def test_a_whole_message_is_decoded() -> None:
    got, said = decode(json.dumps(message()).encode()), message()
    for part in ("headers", "properties"):
        assert got[part].items() >= said[part].items()
    assert (got["body"], got["content-type"]) == (said["body"], said["content-type"])


@pytest.mark.parametrize("name", ["properties", "content-type", "content-encoding"])
def test_what_every_message_says_may_be_missing(name: str) -> None:
    assert decode(json.dumps(without(name)).encode())[name]


@pytest.mark.parametrize("bad", [b"", b"not json", b'{"body"', b"\xff", b"[" * 200_000])
def test_undecodable(bad: bytes) -> None:
    with pytest.raises(Undeliverable) as caught:
        decode(bad)
    assert caught.value.reason is Reason.UNDECODABLE


def without(name: str) -> dict[str, Any]:
    whole = message()
    del whole[name]
    return whole


@pytest.mark.parametrize(
    "bad",
    [
        [],
        None,
        1,
        "x",
        {},
        without("body"),
        without("headers"),
        {**message(), "headers": []},
        {**message(), "body": 3},
        message(id=None),
        message(task=3),
    ],
)
def test_no_message(bad: Any) -> None:
    with pytest.raises(Undeliverable) as caught:
        decode(json.dumps(bad).encode())
    assert caught.value.reason is Reason.INVALID_MESSAGE
    assert caught.value.text


def test_a_message_of_the_first_protocol_has_no_task_in_its_headers() -> None:
    first = {**message(), "headers": {}}
    assert decode(json.dumps(first).encode()) == first


def test_each_delivery_is_rewritten_for_its_attempt() -> None:
    old = message(
        eta="2020-01-01T00:00:00", expires="2020-01-01T00:00:00", retries=9, tidegate={"cost": {"t": 1}}
    )
    ready = prepare(old, JOB, NOW)
    headers = ready["headers"]
    assert (headers["eta"], headers["expires"], headers["retries"]) == (None, None, 1)
    assert ready["properties"]["delivery_tag"] == "7:4294967297"
    header = headers["tidegate"]
    assert header["cost"] == {"t": 1}
    assert {
        name: header[name] for name in ("job_id", "fence", "attempt", "tenant", "operation_id", "step")
    } == {
        "job_id": "7",
        "fence": 4294967297,
        "attempt": 3,
        "tenant": "acme",
        "operation_id": "op",
        "step": "s",
    }


@pytest.mark.parametrize(
    ("attempt", "charged", "crashes", "redelivered"),
    [(1, 0, 0, False), (2, 1, 0, False), (2, 0, 1, True), (2, 1, 1, True), (2, 0, 0, True), (5, 3, 0, True)],
)
def test_only_an_unknown_outcome_makes_celery_look_for_a_stored_success(
    attempt: int, charged: int, crashes: int, redelivered: bool
) -> None:
    ready = prepare(message(), job(attempt=attempt, charged=charged, crashes=crashes), NOW)
    assert ready["properties"]["delivery_info"]["redelivered"] is redelivered


def test_a_message_without_delivery_info_gets_it() -> None:
    bare = message()
    bare["properties"] = {}
    assert prepare(bare, JOB, NOW)["properties"]["delivery_info"]["routing_key"] == "reports"


@pytest.mark.parametrize(
    ("limit", "attempt_ms", "deadline_in_ms", "expected"),
    [
        (None, 0, 0, [None, None]),
        ([None, None], 0, 0, [None, None]),
        ([5, 2], 0, 0, [5, 2]),
        ([5, None], 2_000, 0, [2, None]),
        ([2, None], 5_000, 0, [2, None]),
        ([None, None], 600_000, 1_500, [1.5, None]),
        ([4, 1], 0, 2_500, [2.5, 1]),
        ([4, 3], 0, 2_500, [2.5, None]),
        ([4, 4], 0, 0, [4, None]),
        ([None, 3], 2_000, 0, [2, None]),
        ([None, 3], 0, 0, [None, 3]),
        (None, 0, -10_000, [0.001, None]),
        ("nonsense", 1_000, 0, [1, None]),
        ([True, "x"], 0, 0, [None, None]),
        ([0, -1], 0, 0, [None, None]),
    ],
)
def test_the_shortest_limit_holds(
    limit: object, attempt_ms: int, deadline_in_ms: int, expected: list[float | None]
) -> None:
    deadline = NOW + deadline_in_ms if deadline_in_ms else 0
    assert time_limit(limit, job(attempt_timeout_ms=attempt_ms, deadline_ms=deadline), NOW) == expected
