"""The lease table and the page together: old leases are given back, condemned ones end as they should."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, Outcome, OutcomeKind
from tidegate.domain.states import Reason
from tidegate.worker.handback import hand_back
from tidegate.worker.lease_table import LeaseTable
from tidegate.worker.stamp import MODE_CHILDREN, Stamp, boottime_ns
from tidegate.worker.tenure import Tenure, lease_tag

LIMIT = 12_000_000_000


def job(name: str, effect: Effect = Effect.IDEMPOTENT) -> ClaimedJob:
    return ClaimedJob(
        ref=LeaseRef(name, 1), queue="default", tenant="default", operation_id="op", step="", task="t", task_id="id",
        attempt=1, charged=0, crashes=0, created_ms=0, eligible_ms=0, claimed_ms=0, deadline_ms=0,
        attempt_timeout_ms=0, effect=effect, envelope=b"", record=b"",
    )  # fmt: skip


@pytest.fixture
def stamp() -> Iterator[Stamp]:
    page = Stamp.create(LIMIT, MODE_CHILDREN, children=1, leases=8)
    yield page
    page.close()


@pytest.fixture
def table(stamp: Stamp) -> LeaseTable:
    table = LeaseTable()
    table.tenure = Tenure(stamp)
    return table


def test_the_page_holds_a_lease_while_its_body_may_run(table: LeaseTable, stamp: Stamp) -> None:
    a = job("a")
    table.register([a], boottime_ns())
    assert not stamp.holds(lease_tag("a:1")), "claimed, not started"
    assert table.hand(a.ref)
    assert stamp.holds(lease_tag("a:1"))
    table.end(Outcome(a.ref, OutcomeKind.OK))
    assert not stamp.holds(lease_tag("a:1"))


def test_a_claim_read_too_late_is_given_back_and_not_run(table: LeaseTable, stamp: Stamp) -> None:
    a = job("a")
    table.register([a], boottime_ns() - LIMIT - 1)
    assert not table.hand(a.ref)
    assert table.take_outcomes() == (Outcome(a.ref, OutcomeKind.RELEASE),)
    assert stamp.open == 0
    assert table.counters.too_old == 1


def test_a_lost_lease_may_not_start_any_more(table: LeaseTable, stamp: Stamp) -> None:
    a = job("a")
    table.register([a])
    table.hand(a.ref)
    assert table.drop([a.ref]) == (a,)
    assert not stamp.holds(lease_tag("a:1"))


def test_a_heartbeat_keeps_a_waiting_lease_fresh(table: LeaseTable) -> None:
    a = job("a")
    table.register([a], boottime_ns() - LIMIT - 1)
    table.confirm([a.ref], boottime_ns())
    assert table.hand(a.ref)


@pytest.mark.parametrize("reason", [Reason.WORKER_LOST, Reason.TERMINATED])
def test_a_killed_body_ends_as_it_was_condemned(table: LeaseTable, reason: Reason) -> None:
    a = job("a")
    table.register([a])
    table.hand(a.ref)
    assert table.condemn(hand_back(a))
    assert table.end(Outcome(a.ref, OutcomeKind.FAILED, reason))
    assert table.take_outcomes() == (Outcome(a.ref, OutcomeKind.RELEASE),)


@pytest.mark.parametrize("kind", [OutcomeKind.OK, OutcomeKind.FAILED])
def test_a_body_that_was_faster_than_the_kill_keeps_its_own_end(table: LeaseTable, kind: OutcomeKind) -> None:
    a = job("a")
    own = Outcome(a.ref, kind, Reason.ERROR if kind is OutcomeKind.FAILED else Reason.NONE)
    table.register([a])
    table.hand(a.ref)
    table.condemn(hand_back(a))
    assert table.end(own)
    assert table.take_outcomes() == (own,)


def test_what_has_ended_cannot_be_condemned(table: LeaseTable) -> None:
    a = job("a")
    table.register([a])
    table.hand(a.ref)
    table.end(Outcome(a.ref, OutcomeKind.OK))
    assert not table.condemn(hand_back(a))


def test_what_may_not_be_repeated_waits_for_the_authority() -> None:
    assert hand_back(job("a", Effect.NONE)).kind is OutcomeKind.RELEASE
    once = hand_back(job("a", Effect.AT_MOST_ONCE))
    assert (once.kind, once.reason) == (OutcomeKind.FAILED, Reason.TERMINATED)
