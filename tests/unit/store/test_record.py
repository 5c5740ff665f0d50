"""The stored record: what goes in comes out, and what it cannot hold is refused before anything is sent."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.errors import InvalidJob
from tidegate.domain.job import HEADER_BYTES, Cost, Effect, NewJob, Priority
from tidegate.domain.states import Reason, State
from tidegate.store import record

NOW = 1_800_000_000_000
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
jobs = st.builds(
    NewJob,
    queue=names,
    tenant=names,
    operation_id=names,
    envelope=st.binary(max_size=200),
    step=st.one_of(st.just(""), names),
    task=names,
    task_id=names,
    resources=st.lists(names.map(lambda n: f"key:{n}"), max_size=3).map(tuple),
    costs=st.lists(st.builds(Cost, names, names, st.integers(0, 10**8)), max_size=3).map(tuple),
    priority=st.sampled_from(Priority),
    idempotency_key=st.none() | names,
    deadline_ms=st.integers(0, 1 << 47),
    attempt_timeout_ms=st.integers(0, 1 << 31),
    effect=st.sampled_from([Effect.IDEMPOTENT, Effect.AT_MOST_ONCE]),
)


def stored(job: NewJob, state: State = State.RUNNING) -> bytes:
    """The record as the enqueue script would write it."""
    text, body = record.enqueue_arguments(job)
    delay, timeout, attempt, deadline, boost, flags, words = text.split(" ", 6)
    head = struct.pack(
        ">BBIHBBQQiQQQIIIH",
        *(ord(state.value), int(flags) % 2, 3, 2, 1, 0, 77, NOW + int(delay), int(boost), NOW, NOW + 5),
        *(int(deadline), int(timeout), int(attempt), 0, len(words)),
    )
    assert len(head) == HEADER_BYTES
    return head + words.encode() + body


@given(jobs)
def test_a_claimed_job_is_the_one_that_was_enqueued(job: NewJob) -> None:
    raw = stored(job)
    got = record.claimed(b"12", raw)
    assert (got.queue, got.tenant, got.operation_id, got.step) == (
        job.queue,
        job.tenant,
        job.operation_id,
        job.step,
    )
    assert (got.task, got.task_id, got.envelope, got.effect) == (
        job.task,
        job.task_id,
        job.envelope,
        job.effect,
    )
    assert (got.deadline_ms, got.attempt_timeout_ms) == (job.deadline_ms, job.attempt_timeout_ms)
    assert (got.attempt, got.charged, got.crashes, got.claimed_ms) == (3, 2, 1, NOW + 5)
    assert got.record == raw
    assert got.head == raw[: len(raw) - len(job.envelope)]


@given(jobs)
def test_a_view_is_the_same_job(job: NewJob) -> None:
    seen = record.view("12", stored(job, State.FAILED), 'error 17 {"a": "b c"}')
    assert (seen.queue, seen.tenant, seen.operation_id, seen.step) == (
        job.queue,
        job.tenant,
        job.operation_id,
        job.step,
    )
    assert (seen.state, seen.reason, seen.detail) == (State.FAILED, "error", '{"a": "b c"}')


@given(jobs)
def test_a_failure_is_what_the_authority_judges(job: NewJob) -> None:
    raw = stored(job, State.FAILED)
    told = '{"message": "a b", "not_before_ms": 99, "requeue": false}'
    found = record.failure("12", raw[: len(raw) - len(job.envelope)], f"rejected 17 {told}")
    assert (found.ref.job_id, found.task, found.detail["message"]) == ("12", job.task, "a b")
    attempt = found.attempt
    assert (attempt.reason, attempt.effect, attempt.charged, attempt.crashes) == (
        Reason.REJECTED,
        job.effect if job.effect is Effect.AT_MOST_ONCE else Effect.IDEMPOTENT,
        2,
        1,
    )
    assert (attempt.first_failed_ms, attempt.deadline_ms) == (17, job.deadline_ms)
    assert (attempt.not_before_ms, attempt.again) == (99, False)


@given(jobs)
def test_the_first_argument_is_one_line_of_words(job: NewJob) -> None:
    """The script takes it apart at single spaces; anything else would shift the words."""
    text, _ = record.enqueue_arguments(job)
    words = text.split(" ")
    assert "" not in words
    budgets = {(cost.dependency, cost.unit) for cost in job.costs}
    assert len(words) == 6 + 9 + len(set(job.resources)) + len(budgets)
    assert text.isascii()


PLAIN = NewJob("q", "t", "op", b"{}")


@pytest.mark.parametrize(
    "fault",
    [
        {"delay_ms": -1},
        {"deadline_ms": -5},
        {"queue_timeout_ms": 1 << 48},
        {"attempt_timeout_ms": -1},
        {"resources": ("tenant:b",)},
        {"resources": ("key:a", "queue:q")},
        {"resources": ("cost:llm/tokens",)},
        {"resources": tuple(f"key:{i}" for i in range(9))},
        {"resources": tuple(f"key:{i}" for i in range(8)), "costs": (Cost("llm", "tokens", 1),)},
        {"costs": (Cost("llm", "tokens", -1),)},
        {"costs": (Cost("llm", "tokens", 10**9), Cost("llm", "tokens", 1))},
        {"resources": tuple(f"key:{i}{'é' * 120}" for i in range(99))},
    ],
    ids=lambda fault: next(iter(fault)) + str(len(str(fault))),
)
def test_what_the_record_cannot_hold_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob):
        record.enqueue_arguments(replace(PLAIN, **fault))


def test_a_timeout_longer_than_the_record_can_say_does_not_become_a_short_one() -> None:
    text, _ = record.enqueue_arguments(replace(PLAIN, queue_timeout_ms=60 * 86_400_000))
    assert int(text.split(" ")[1]) == (1 << 32) - 1


def test_a_cost_is_a_resource_with_its_units_and_part_of_the_lane() -> None:
    two = (Cost("llm", "tokens", 900), Cost("llm", "tokens", 100), Cost("a b", "x/y", 0))
    words = record.enqueue_arguments(replace(PLAIN, resources=("key:z",), costs=two))[0].split(" ")
    assert words[15:] == ["key:z", "cost:a%20b/x%2Fy=0", "cost:llm/tokens=1000"]
    more = record.enqueue_arguments(replace(PLAIN, resources=("key:z",), costs=two[:1]))[0].split(" ")
    same = record.enqueue_arguments(replace(PLAIN, resources=("key:z",), costs=(two[1], two[2])))[0].split(
        " "
    )
    assert words[8] == same[8] != more[8], "units make no lane of their own, another budget does"


def test_bodies_that_differ_in_a_byte_have_different_hashes() -> None:
    hashes = {
        record.enqueue_arguments(replace(PLAIN, idempotency_key="k", envelope=body))[0].split(" ")[12]
        for body in (b"\xff", b"\xfe", b"\xef\xbf\xbd")
    }
    assert len(hashes) == 3
