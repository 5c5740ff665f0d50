"""enqueue: taken in whole or refused whole, and a verdict for each job."""

from __future__ import annotations

from typing import Any

import pytest
from tests.harness.wait import wait_until
from tests.lua.conftest import MakeRig
from tests.lua.rig import Rig, limit

from tidegate.config import QueueSettings, TenantSettings
from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import OutcomeKind, Pressure, Priority
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Accepted, Closed, Conflict, Duplicate, Full

DEPTH_3 = {"default": QueueSettings(max_depth=3)}


def kinds(verdicts: list[Any]) -> list[str]:
    return [type(verdict).__name__ for verdict in verdicts]


def test_accepted_jobs_wait_in_their_order(rig: Rig) -> None:
    assert rig.put("a", "b", "c") == [Accepted(op, n, Pressure.GREEN) for n, op in enumerate("abc", 1)]
    assert [rig.state(op) for op in "abcd"] == [State.WAITING] * 3 + [None]
    assert [job.operation_id for job in rig.take(8)] == ["a", "b", "c"]


def test_a_running_job_counts_in_the_bound(rig: Rig) -> None:
    rig.limits(queue=limit(depth=1))
    rig.put("a")
    rig.one()
    assert kinds(rig.put("b")) == ["Full"]


def test_order_holds_across_a_bulk_of_several_scripts(rig: Rig) -> None:
    operations = [f"op-{i:03}" for i in range(250)]
    verdicts = rig.put(*operations)
    assert [(v.operation_id, v.position) for v in verdicts if isinstance(v, Accepted)] == [
        (op, n) for n, op in enumerate(operations, 1)
    ]
    claimed = [job.operation_id for _ in range(16) for job in rig.take(16)]
    assert claimed == operations


def test_a_delay_is_kept_by_the_store(rig: Rig) -> None:
    rig.put("later", delay_ms=5_000)
    assert rig.state("later") is State.DELAYED
    assert rig.take() == ()


def test_urgency_is_a_head_start_and_age_wins_in_the_end(rig: Rig) -> None:
    rig.put("old")
    rig.tick(Priority.HIGH.value + 1)
    rig.put("high", priority=Priority.HIGH)
    rig.put("normal")
    rig.put("low", priority=Priority.LOW)
    rig.put("urgent", priority=Priority.URGENT)
    assert [job.operation_id for job in rig.take(8)] == ["urgent", "old", "high", "normal", "low"]


# -- the same job twice


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (None, State.WAITING),
        ("claim", State.RUNNING),
        (OutcomeKind.OK, State.SUCCEEDED),
        (OutcomeKind.FAILED, State.FAILED),
        (OutcomeKind.RELEASE, State.WAITING),
        (OutcomeKind.UNDELIVERABLE, State.DEAD),
    ],
)
def test_a_key_names_its_job_in_every_state(rig: Rig, end: Any, state: State) -> None:
    rig.put("first", idempotency_key="k")
    if end:
        job = rig.one()
        if end != "claim":
            rig.end(job, end, Reason.ERROR)
    assert rig.put("second", idempotency_key="k") == [Duplicate("first", state)]
    assert rig.state("second") is None


def test_a_key_of_a_cancelled_job_is_free(rig: Rig) -> None:
    rig.put("first", idempotency_key="k")
    rig.end(rig.one(), OutcomeKind.CANCELLED)
    assert kinds(rig.put("second", idempotency_key="k")) == ["Accepted"]


def test_a_key_ends_some_time_after_its_job_and_not_after_its_enqueue(make: MakeRig) -> None:
    rig = make(idempotency_ttl=1.0)
    rig.worker()
    rig.put("first", idempotency_key="k")
    (key,) = [name for name in rig.dump() if name.startswith("key:")]
    assert rig.dump().ttl[key] == -1
    rig.end(rig.one())
    assert rig.put("second", idempotency_key="k") == [Duplicate("first", State.SUCCEEDED)]
    assert 0 < rig.dump().ttl[key] <= 1_000
    wait_until(lambda: key not in rig.dump(), "the key to end")
    assert kinds(rig.put("third", idempotency_key="k")) == ["Accepted"]


def test_a_key_with_another_body_is_a_conflict(rig: Rig) -> None:
    rig.put("first", idempotency_key="k", envelope=b'{"a": 1}')
    assert rig.put("second", idempotency_key="k", envelope=b'{"a": 2}') == [Conflict("first")]
    assert rig.put("third", idempotency_key="k", envelope=b'{"a": 1}') == [Duplicate("first", State.WAITING)]
    assert rig.put("fourth", idempotency_key="k", body_hash="other words, with spaces") == [Conflict("first")]


@pytest.mark.parametrize("other", [{"tenant": "b"}, {"task": "other"}, {"idempotency_key": "k2"}])
def test_the_scope_of_a_key_is_tenant_task_and_key(rig: Rig, other: dict[str, str]) -> None:
    rig.put("first", tenant="a", task="t", idempotency_key="k")
    assert kinds(rig.put("second", **{"tenant": "a", "task": "t", "idempotency_key": "k", **other})) == [
        "Accepted"
    ]


def test_a_key_of_several_parts_is_not_their_text_joined(rig: Rig) -> None:
    rig.put("first", tenant="a:b", task="c", idempotency_key="k")
    assert kinds(rig.put("second", tenant="a", task="b:c", idempotency_key="k")) == ["Accepted"]


def test_a_step_of_an_operation_is_one_job(rig: Rig) -> None:
    rig.put("op", step="s1")
    assert rig.put("op", step="s1") == [Duplicate("op", State.WAITING)]
    assert kinds(rig.put("op", step="s2")) == ["Accepted"]
    rig.end(rig.one())
    assert rig.put("op", step="s1") == [Duplicate("op", State.SUCCEEDED)]


def test_an_operation_whose_id_the_caller_chose_is_looked_up(rig: Rig) -> None:
    rig.put("op", known_operation=True)
    assert rig.put("op", known_operation=True) == [Duplicate("op", State.WAITING)]


def test_finished_jobs_are_forgotten_by_age(make: MakeRig) -> None:
    rig = make(history=60.0)
    rig.worker()
    rig.put("op", step="s")
    rig.end(rig.one())
    rig.tick(59_999)
    assert rig.state("op", "s") is State.SUCCEEDED
    rig.tick(1)
    assert rig.state("op", "s") is None
    assert kinds(rig.put("op", step="s")) == ["Accepted"]


def test_finished_jobs_are_forgotten_by_number(make: MakeRig) -> None:
    rig = make(history_jobs=2)
    rig.worker()
    rig.put("a", "b", "c")
    for job in rig.take(3):
        rig.end(job)
        rig.tick(1)
    rig.store.promote()
    assert [rig.state(op) for op in "abc"] == [None, State.SUCCEEDED, State.SUCCEEDED]


def test_the_same_key_twice_in_one_batch(rig: Rig) -> None:
    verdicts = rig.put("a", "b", idempotency_key="k")
    assert verdicts == [Accepted("a", 1, Pressure.GREEN), Duplicate("a", State.WAITING)]


# -- bounds


def test_whatever_is_not_finished_counts(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=4)})
    rig.worker()
    rig.put("running", "failed")
    _, failed = rig.take(2)
    rig.end(failed, OutcomeKind.FAILED, Reason.ERROR)
    rig.put("waiting")
    rig.put("delayed", delay_ms=1_000)
    (full,) = rig.put("one more")
    assert isinstance(full, Full)
    assert (full.scope, full.depth, full.limit) == ("queue:default", 4, 4)
    assert 0.1 <= full.retry_after <= 30
    counts = rig.store.snapshot().queues["default"]
    assert (counts.waiting, counts.delayed, counts.running, counts.failed, counts.depth) == (1, 1, 1, 1, 4)


def test_finished_and_dead_jobs_make_room(make: MakeRig) -> None:
    rig = make(queues=DEPTH_3)
    rig.worker()
    rig.put("ok", "cancelled", "undeliverable")
    for job, kind in zip(
        rig.take(3), (OutcomeKind.OK, OutcomeKind.CANCELLED, OutcomeKind.UNDELIVERABLE), strict=True
    ):
        assert kinds(rig.put("more")) == ["Full"]
        rig.end(job, kind, Reason.UNDECODABLE)
        assert kinds(rig.put("")) == ["Accepted"]


def test_a_tenant_has_a_bound_in_each_queue(make: MakeRig) -> None:
    rig = make(tenants={"a": TenantSettings(max_depth=2)}, queues={"other": QueueSettings()})
    assert kinds(rig.put("", "", "", tenant="a")) == ["Accepted", "Accepted", "Full"]
    (full,) = rig.put(tenant="a")
    assert isinstance(full, Full)
    assert (full.scope, full.depth, full.limit) == ("tenant:a", 2, 2)
    assert kinds(rig.put(tenant="b")) == ["Accepted"]
    assert kinds(rig.put(tenant="a", queue="other")) == ["Accepted"]


def test_a_refusal_changes_nothing(make: MakeRig) -> None:
    rig = make(queues=DEPTH_3)
    rig.put("", "", "")
    before = rig.dump()
    assert kinds(rig.put("x", tenant="new", idempotency_key="k")) == ["Full"]
    after = rig.dump()
    changed = {name for name in set(before) | set(after) if before.get(name) != after.get(name)}
    assert {name.partition(":")[0] for name in changed} <= {"rq", "meta", "pace", "refused"}


def test_a_batch_fills_up_and_each_job_has_its_own_verdict(make: MakeRig) -> None:
    rig = make(queues=DEPTH_3)
    rig.put("there", idempotency_key="k")
    jobs = [
        rig.job("dup", idempotency_key="k"),
        rig.job("one"),
        rig.job("conflict", idempotency_key="k", envelope=b"other"),
        rig.job("two"),
        rig.job("three"),
        rig.job("elsewhere", queue="second"),
    ]
    assert kinds(rig.store.enqueue(jobs)) == [
        "Duplicate",
        "Accepted",
        "Conflict",
        "Accepted",
        "Full",
        "Accepted",
    ]


def test_a_continuation_is_never_refused_and_counts(make: MakeRig) -> None:
    rig = make(
        queues=DEPTH_3, tenants={"default": TenantSettings(max_depth=3, max_concurrency=None, rate=None)}
    )
    assert kinds(rig.put("", "", "", "")) == ["Accepted"] * 3 + ["Full"]
    assert kinds(rig.put("op", step="next", continuation=True)) == ["Accepted"]
    assert kinds(rig.put("op", step="next", continuation=True)) == ["Duplicate"]
    assert rig.store.snapshot().queues["default"].depth == 4


def test_a_continuation_first_in_its_batch_counts_for_the_next(make: MakeRig) -> None:
    """The tenant's own count was read after the continuation had been taken, without it."""
    rig = make(tenants={"a": TenantSettings(max_depth=2, max_concurrency=None, rate=None)})
    jobs = [rig.job("c", step="s", tenant="a", continuation=True), *(rig.job(tenant="a") for _ in range(3))]
    assert kinds(rig.store.enqueue(jobs)) == ["Accepted", "Accepted", "Full", "Full"]


def test_pressure_is_the_worse_of_queue_and_tenant(make: MakeRig) -> None:
    rig = make(
        queues={"default": QueueSettings(max_depth=20)},
        tenants={"a": TenantSettings(max_depth=10, max_concurrency=None, rate=None)},
    )
    seen = [v.pressure.value for v in rig.put(*[""] * 10, tenant="a") if isinstance(v, Accepted)]
    assert seen == ["green"] * 6 + ["yellow"] * 2 + ["red"] * 2
    seen = [v.pressure.value for v in rig.put(*[""] * 10, tenant="b") if isinstance(v, Accepted)]
    assert seen == ["green"] * 3 + ["yellow"] * 4 + ["red"] * 3


def test_retry_after_follows_the_pace_of_the_queue(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=4)})
    rig.worker()

    def refused() -> float:
        (full,) = rig.put("no")
        assert isinstance(full, Full)
        return full.retry_after

    rig.put("", "", "", "")
    assert refused() == 1.0
    for job in rig.take(4):
        rig.end(job)
    rig.put("", "", "", "")
    rig.tick(2_000)
    assert refused() == 0.5  # four jobs in two seconds
    assert refused() == 0.5
    rig.tick(3_000)
    assert refused() == 1.0  # and then none


# -- closed, paused, full


def test_a_closed_queue_takes_nothing_new_but_what_belongs_to_admitted_work(rig: Rig) -> None:
    rig.put("op", idempotency_key="k")
    rig.limits(queue=limit(closed=True))
    assert rig.put("new") == [Closed("default")]
    assert rig.put("again", idempotency_key="k") == [Duplicate("op", State.WAITING)]
    assert kinds(rig.put("op", step="next", continuation=True)) == ["Accepted"]
    assert len(rig.take(4)) == 2


def test_a_paused_queue_goes_on_accepting(rig: Rig) -> None:
    rig.limits(queue=limit(paused=True))
    assert kinds(rig.put("op")) == ["Accepted"]
    reply = rig.claim(4)
    assert (reply.jobs, reply.more) == ((), False)
    rig.limits()
    assert rig.one().operation_id == "op"


# -- lost replies


def test_a_lost_reply_is_answered_again(rig: Rig) -> None:
    rig.put("warm-up")
    rig.lose_reply()
    assert rig.put("a", "b") == [Accepted("a", 2, Pressure.GREEN), Accepted("b", 3, Pressure.GREEN)]
    assert len(rig.dump().jobs) == 3


def test_a_lost_reply_is_answered_when_the_job_is_long_over(make: MakeRig) -> None:
    """An unkeyed job has nothing but its request to be known by."""
    producer, worker = make(), make()
    worker.worker()
    producer.put("warm-up")

    def meanwhile() -> None:
        for job in worker.take(2):
            worker.end(job)
        worker.forget_scripts()

    producer.lose_reply(meanwhile)
    assert producer.put("a") == [Accepted("a", 2, Pressure.GREEN)]
    assert worker.take(2) == ()
    assert worker.dump().jobs == {}


def test_an_older_request_is_refused(rig: Rig) -> None:
    """A copy that wandered in the network must not run after its successor."""
    rig.put("a")
    (line,) = rig.store._idle
    line._request -= 2
    with pytest.raises(StoreRefused, match="later request"):
        rig.put("b")
    assert rig.state("b") is None


def test_replies_of_a_pipeline_are_lost_together(rig: Rig) -> None:
    rig.put("warm-up")
    rig.lose_reply()
    operations = [f"op-{i}" for i in range(230)]
    assert [v.operation_id for v in rig.put(*operations) if isinstance(v, Accepted)] == operations
    assert len(rig.dump().jobs) == 231
