"""The one message header."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidJob
from tidegate.domain.header import JobHeader, delivery_header
from tidegate.domain.job import ClaimedJob, Effect, LeaseRef

TEXT = st.text(min_size=1, max_size=10)
HEADERS = st.builds(
    JobHeader,
    tenant=TEXT,
    operation_id=TEXT,
    step=st.text(max_size=10),
    deadline=st.integers(0, 2**45),
    queue_timeout=st.integers(0, 2**40),
    attempt_timeout=st.integers(0, 2**40),
    priority=st.sampled_from(["", "low", "high"]),
    key=st.text(max_size=10),
    effect=st.sampled_from(["", "none", "at_most_once"]),
    resources=st.lists(TEXT, max_size=3).map(tuple),
    cost=st.none() | st.dictionaries(TEXT, st.integers(0, 9), min_size=1, max_size=2),
    continuation=st.booleans(),
    known=st.booleans(),
)


@given(HEADERS)
def test_survives_the_wire(header: JobHeader) -> None:
    assert JobHeader.from_dict(json.loads(json.dumps(header.as_dict()))) == header


@given(HEADERS)
def test_says_nothing_that_is_not_said(header: JobHeader) -> None:
    assert all(header.as_dict().values())


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        "x",
        {},
        {"tenant": "a"},
        {"tenant": "a", "operation_id": ""},
        {"tenant": 1, "operation_id": "o"},
        {"tenant": "a", "operation_id": "o", "deadline": "1"},
        {"tenant": "a", "operation_id": "o", "deadline": True},
        {"tenant": "a", "operation_id": "o", "continuation": 1},
        {"tenant": "a", "operation_id": "o", "resources": "r"},
    ],
)
def test_refuses_what_is_no_header(raw: object) -> None:
    with pytest.raises(InvalidJob) as raised:
        JobHeader.from_dict(raw)
    assert raised.value.where.startswith("headers.tidegate")


def test_fields_of_a_newer_release_are_ignored() -> None:
    header = JobHeader.from_dict({"tenant": "a", "operation_id": "o", "future": 1, "attempt": 3})
    assert header == JobHeader(tenant="a", operation_id="o")


def _claimed(deadline_ms: int, attempt_timeout_ms: int) -> ClaimedJob:
    return ClaimedJob(
        ref=LeaseRef("j", 7), queue="q", tenant="acme", operation_id="o", step="", task="t", task_id="i", attempt=2,
        charged=1, crashes=0, created_ms=0, eligible_ms=0, claimed_ms=1_000, deadline_ms=deadline_ms,
        attempt_timeout_ms=attempt_timeout_ms, effect=Effect.AT_MOST_ONCE, envelope=b"", record=b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("deadline_ms", "timeout_ms", "ends"),
    [(0, 0, None), (5_000, 0, 5_000), (0, 500, 1_500), (1_200, 500, 1_200)],
)
def test_a_delivery_says_when_the_attempt_ends(deadline_ms: int, timeout_ms: int, ends: int | None) -> None:
    header = delivery_header(_claimed(deadline_ms, timeout_ms))
    assert header.get("ends") == ends
    assert (header["attempt"], header["charged"], header["fence"], header["effect"]) == (
        2,
        1,
        7,
        "at_most_once",
    )
    assert "step" not in header
