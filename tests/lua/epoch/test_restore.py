"""What the server has forgotten and a worker remembers is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lua.epoch.place import Place, done
from tests.lua.rig import LEASE, Rig, limit

from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import OutcomeKind, SettleWord
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Accepted, Duplicate

# -- what a worker remembers


def test_a_lost_claim_is_restored(place: Place, rig: Rig) -> None:
    rig.put("op")
    place.remember()
    job = rig.one()
    place.come_back()
    assert rig.store.reassert("w1", [job], []) == ()
    assert rig.state("op") is State.RUNNING
    assert rig.take() == ()
    assert rig.end(job) is SettleWord.OK


def test_a_lost_enqueue_is_restored_with_its_claim(place: Place, rig: Rig) -> None:
    place.remember()
    rig.put("op", envelope=b"the body", idempotency_key="k", resources=("key:x",))
    job = rig.one()
    place.come_back()
    assert rig.state("op") is None
    assert rig.store.reassert("w1", [job], []) == ()
    found = rig.store.job("op")
    assert found
    assert (found.state, found.envelope, found.attempt) == (State.RUNNING, b"the body", 1)
    assert rig.put("again", idempotency_key="k", envelope=b"the body") == [Duplicate("op", State.RUNNING)]
    rig.end(job, OutcomeKind.RELEASE)
    assert rig.one().envelope == b"the body"


def test_a_lost_success_is_not_run_again(place: Place, rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    place.remember()
    rig.end(job)
    place.come_back()
    rig.store.reassert("w1", [], [done(job)])
    assert rig.state("op") is State.SUCCEEDED
    assert rig.take() == ()


def test_a_job_whose_whole_life_was_lost_is_remembered(place: Place, rig: Rig) -> None:
    place.remember()
    rig.put("op", step="s", idempotency_key="k")
    job = rig.one()
    rig.end(job)
    place.come_back()
    rig.store.reassert("w1", [], [done(job)])
    assert rig.put("again", idempotency_key="k") == [Duplicate("op", State.SUCCEEDED)]
    assert rig.put("op", step="s") == [Duplicate("op", State.SUCCEEDED)]
    assert rig.dump().ttl[next(name for name in rig.dump() if name.startswith("key:"))] > 0


@pytest.mark.parametrize("kind", OutcomeKind)
def test_a_lost_claim_and_its_end_are_restored(place: Place, rig: Rig, kind: OutcomeKind) -> None:
    rig.put("op", idempotency_key="k")
    place.remember()
    job = rig.one()
    rig.end(job, kind, Reason.ERROR)
    expected = rig.state("op")
    place.come_back()
    assert rig.state("op") is State.WAITING
    rig.store.reassert("w1", [], [done(job, kind)])
    assert rig.state("op") is expected
    rig.store.reassert("w1", [], [done(job, kind)])
    assert rig.state("op") is expected


def test_a_lost_promotion_is_restored_with_its_claim(place: Place, rig: Rig) -> None:
    rig.put("op", delay_ms=1_000)
    place.remember()
    rig.tick(1_000)
    rig.store.promote()
    job = rig.one()
    place.come_back()
    assert rig.state("op") is State.DELAYED
    assert rig.store.reassert("w1", [job], []) == ()
    assert rig.end(job) is SettleWord.OK


def both_orders(one: Callable[[], Any], two: Callable[[], Any], first: int) -> list[Any]:
    calls = [one, two]
    answers: list[Any] = [None, None]
    for i in (first, 1 - first):
        answers[i] = calls[i]()
    return answers


@pytest.mark.parametrize("first", [0, 1])
def test_the_later_of_two_attempts_wins_whoever_speaks_first(place: Place, rig: Rig, first: int) -> None:
    """w1 gave the job back and w2 claimed it, both in the lost second."""
    rig.worker("w2")
    rig.put("op", resources=("key:x",))
    old = rig.one()
    place.remember()
    rig.end(old, OutcomeKind.RELEASE)
    new = rig.one(worker="w2")
    place.come_back()
    answers = both_orders(
        lambda: rig.store.reassert("w1", [], [done(old, OutcomeKind.RELEASE)]),
        lambda: rig.store.reassert("w2", [new], []),
        first,
    )
    assert answers == [(), ()]
    assert rig.take() == ()
    assert rig.end(old) is SettleWord.STALE
    assert rig.end(new) is SettleWord.OK


@pytest.mark.parametrize("first", [0, 1])
def test_two_ends_of_one_job(place: Place, rig: Rig, first: int) -> None:
    rig.worker("w2")
    rig.put("op")
    old = rig.one()
    place.remember()
    rig.end(old, OutcomeKind.RELEASE)
    new = rig.one(worker="w2")
    rig.end(new)
    place.come_back()
    both_orders(
        lambda: rig.store.reassert("w1", [], [done(old, OutcomeKind.RELEASE)]),
        lambda: rig.store.reassert("w2", [], [done(new)]),
        first,
    )
    assert rig.state("op") is State.SUCCEEDED
    assert rig.take() == ()


@pytest.mark.parametrize("ended", [False, True])
def test_a_job_that_its_producer_sent_again_is_one_job(place: Place, rig: Rig, ended: bool) -> None:
    """The reply of the enqueue was lost with the server; the same request found an empty slot and an unknown job."""
    place.remember()
    rig.put("op", known_operation=True)
    job = rig.one()
    if ended:
        rig.end(job)
    place.come_back()
    assert isinstance(rig.put("op", known_operation=True)[0], Accepted)
    if ended:
        rig.store.reassert("w1", [], [done(job)])
        assert rig.state("op") is State.SUCCEEDED
    else:
        assert rig.store.reassert("w1", [job], []) == ()
        assert rig.end(job) is SettleWord.OK
    assert rig.take() == ()
    assert rig.store.snapshot().queues["default"].depth == 0


def test_a_restored_claim_has_taken_its_tokens(place: Place, rig: Rig) -> None:
    rig.limits(tenant=limit(rate=(1, 1), burst=2_000_000))
    rig.tick(2_000_000)
    rig.live(1_000)
    rig.worker()
    rig.put("a", "b", "c")
    place.remember()
    jobs = rig.take(3)
    assert len(jobs) == 2
    place.come_back()
    rig.store.reassert("w1", jobs, [])
    assert rig.take() == ()


def test_who_speaks_after_the_hold_may_have_lost_its_job(place: Place, rig: Rig) -> None:
    rig.worker("w2")
    rig.put("op")
    place.remember()
    old = rig.one()
    place.come_back()
    rig.store.extend("w2", [])
    rig.live(LEASE)
    new = rig.one(worker="w2")
    assert rig.store.reassert("w1", [old], []) == (old.ref,)
    assert rig.end(old) is SettleWord.STALE
    assert rig.end(new) is SettleWord.OK


def test_many_leases_are_reasserted_in_parts(place: Place, rig: Rig) -> None:
    rig.put(*[""] * 50)
    place.remember()
    jobs = [job for _ in range(4) for job in rig.take(16)]
    ended, live = jobs[:30], jobs[30:]
    for job in ended:
        rig.end(job)
    place.come_back()
    assert rig.store.reassert("w1", live, [done(job) for job in ended]) == ()
    assert rig.store.snapshot().queues["default"].depth == 20
    assert rig.take() == ()


def test_reasserting_without_need_changes_nothing(place: Place, rig: Rig) -> None:
    rig.put("a", "b")
    live, over = rig.take(2)
    rig.end(over)
    before = rig.dump().jobs
    assert rig.store.reassert("w1", [live, over], [done(over)]) == (over.ref,)
    assert rig.dump().jobs == before


# -- everything lost


def test_a_flushed_store_is_refused_by_every_command(place: Place, rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.client.flushall()
    commands: list[Callable[[], Any]] = [
        rig.put,
        rig.claim,
        lambda: rig.end(job),
        lambda: rig.store.release([job.ref]),
        lambda: rig.store.extend("w1", [job.ref]),
        rig.store.reap,
        rig.store.promote,
        lambda: rig.worker("w2"),
        lambda: rig.store.unregister("w1"),
        lambda: rig.store.reassert("w1", [job], []),
        rig.store.snapshot,
        lambda: rig.store.job("op"),
        lambda: rig.store.state("op"),
        lambda: rig.tick(1),
    ]
    for command in commands:
        with pytest.raises(StoreRefused, match="records are gone"):
            command()
    assert rig.client.dbsize() == 0


def test_a_fleet_made_anew_after_a_flush_repeats_no_id(place: Place, rig: Rig) -> None:
    rig.put("op")
    job = rig.one()
    rig.client.flushall()
    fresh = place.rig()
    fresh.worker()
    assert fresh.store.extend("w1", [job.ref]).lost == (job.ref,)
    fresh.put("op")
    assert fresh.one().ref.fence >= job.ref.fence
