"""A server that comes back, with or without its last second: nothing is given or judged until the workers spoke."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.server import AofMark, Server
from tests.lua.limits import Limits
from tests.lua.rig import LEASE, Rig, limit, outcome, settings
from tests.lua.truth import complaints

from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.domain.job import ClaimedJob, OutcomeKind, Settled, SettleWord
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.store import ReapReply


@dataclass
class Place:
    """A fleet whose server can lose what was written since `remember()`."""

    server: Server
    rigs: list[Rig] = field(default_factory=list)
    mark: AofMark | None = None

    def rig(self, **options: Any) -> Rig:
        rig = Rig(self.server.client(), self.server.url, settings("fleet", **options))
        self.rigs.append(rig)
        return rig

    def remember(self) -> None:
        self.mark = self.server.aof_mark()

    def come_back(self) -> None:
        """kill -9, without what came after `remember()`, and start."""
        if self.mark is None:
            self.remember()
        assert self.mark
        self.server.kill9_losing_since(self.mark)
        self.server.start()
        self.mark = None
        for rig in self.rigs:
            rig.client.connection_pool.disconnect()


@pytest.fixture
def place(own_server: OwnServer) -> Iterator[Place]:
    place = Place(own_server(options={"appendonly": "yes"}))
    yield place
    if place.rigs and "meta" in (dump := place.rigs[0].dump()):
        found = [*complaints(dump), *Limits(dump).forgotten()]
        assert not found, "\n".join(found)
    for rig in place.rigs:
        rig.close()


@pytest.fixture
def rig(place: Place) -> Rig:
    rig = place.rig()
    rig.worker()
    return rig


def done(job: ClaimedJob, kind: OutcomeKind = OutcomeKind.OK) -> Settled:
    return Settled(job.head, outcome(job, kind, Reason.ERROR))


# -- the hold


def test_nothing_is_given_until_every_worker_has_spoken(place: Place, rig: Rig) -> None:
    rig.worker("w2")
    rig.put("running", "waiting")
    job = rig.one()
    place.come_back()
    reply = rig.claim(4)
    assert (reply.jobs, reply.held_ms) == ((), LEASE)
    assert rig.store.reassert("w1", [job], []) == ()
    assert rig.claim(4).held_ms == LEASE
    rig.store.reassert("w2", [], [])
    reply = rig.claim(4)
    assert ([job.operation_id for job in reply.jobs], reply.held_ms) == (["waiting"], 0)
    assert "held" not in rig.dump()


def test_reports_of_a_worker_that_has_not_spoken_are_held(place: Place, rig: Rig) -> None:
    rig.put("a", "b")
    one, two = rig.take(2)
    place.come_back()
    assert rig.end(one) is SettleWord.HELD
    assert rig.claim(0, outcomes=[outcome(one)]).words == (SettleWord.HELD,)
    assert rig.store.release([two.ref]) == [SettleWord.HELD]
    reply = rig.store.extend("w1", [one.ref, two.ref])
    assert (reply.lost, reply.held, reply.known) == ((), True, False)
    rig.store.reassert("w1", [one, two], [])
    assert [rig.end(one), rig.end(two)] == [SettleWord.OK] * 2


def test_the_hold_ends_by_time(place: Place, rig: Rig) -> None:
    rig.put("op")
    place.come_back()
    assert rig.claim().held_ms == LEASE
    rig.live(LEASE - 1_000)
    assert rig.claim().held_ms == 1_000
    rig.live(1_000)
    assert [job.operation_id for job in rig.take()] == ["op"]
    assert "held" not in rig.dump()


def test_leases_are_judged_one_lease_after_the_restart_at_the_earliest(place: Place, rig: Rig) -> None:
    rig.put("op")
    rig.one()
    place.come_back()
    assert rig.store.reap() == ReapReply(0, 0)
    assert rig.live(LEASE - 1_000) == ReapReply(0, 0)
    assert rig.live(1_000) == ReapReply(1, 0)


def test_a_fleet_without_workers_holds_nothing(place: Place) -> None:
    rig = place.rig()
    rig.put("op")
    place.come_back()
    rig.worker()
    assert rig.one().operation_id == "op"


def test_a_worker_that_was_silent_is_not_waited_for(place: Place, rig: Rig) -> None:
    rig.worker("silent")
    rig.tick(LEASE + 1)
    rig.store.extend("w1", [])
    place.come_back()
    rig.put("op")
    assert rig.claim().held_ms == LEASE
    rig.store.reassert("w1", [], [])
    assert rig.take()


def test_a_polite_exit_ends_the_hold_and_wakes_the_others(place: Place, rig: Rig) -> None:
    rig.worker("leaving")
    rig.put("op")
    place.come_back()
    rig.store.reassert("w1", [], [])
    rig.client.delete(rig.store.keyspace.wake("default"))
    rig.store.unregister("leaving")
    assert rig.client.llen(rig.store.keyspace.wake("default")) == 1
    assert rig.take()


def test_nothing_is_promoted_or_buried_during_the_hold(place: Place, rig: Rig) -> None:
    """It may be running: its claim may be in a worker's memory only."""
    rig.put("delayed", delay_ms=1_000)
    rig.put("timeout", queue_timeout_ms=1_000)
    place.remember()
    job = rig.one()
    place.come_back()
    rig.store.extend("w1", [])
    rig.tick(2_000)
    assert rig.store.promote() == 0
    assert [rig.state("delayed"), rig.state("timeout")] == [State.DELAYED, State.WAITING]
    assert rig.store.reassert("w1", [job], []) == ()
    assert rig.end(job) is SettleWord.OK


def test_enqueue_goes_on_but_for_keys(place: Place, rig: Rig) -> None:
    place.come_back()
    assert isinstance(rig.put("plain")[0], Accepted)
    with pytest.raises(StoreUnavailable, match="waits for its workers") as caught:
        rig.store.enqueue([rig.job("keyed", idempotency_key="k")], timeout=0.2)
    assert not caught.value.maybe_done
    with pytest.raises(StoreUnavailable) as caught:
        rig.store.enqueue([rig.job("other"), rig.job("keyed", idempotency_key="k")], timeout=0.2)
    assert caught.value.maybe_done
    assert [rig.state("other"), rig.state("keyed")] == [State.WAITING, None]


def test_a_clean_restart_opens_an_epoch_too(place: Place, rig: Rig) -> None:
    before = rig.store.snapshot()
    rig.put("op")
    job = rig.one()
    place.server.restart()
    rig.client.connection_pool.disconnect()
    assert rig.store.reassert("w1", [job], []) == ()
    after = rig.store.snapshot()
    assert (after.epoch, after.resets) == (before.epoch + 1, before.resets + 1)


# -- fences


def test_ids_and_fences_never_repeat(place: Place, rig: Rig) -> None:
    ids: list[str] = []
    fences: list[int] = []
    for _ in range(4):
        place.remember()
        rig.put(*[""] * 4)
        for job in rig.take(3):
            ids.append(job.ref.job_id)
            fences.append(job.ref.fence)
            rig.end(job)
        place.come_back()
        rig.store.reassert("w1", [], [])
    assert fences == sorted(set(fences))
    assert len(set(ids)) == len(ids)


def test_they_do_not_repeat_when_the_opening_of_an_epoch_is_forgotten_as_well(place: Place, rig: Rig) -> None:
    """The second crash leaves a store that has never heard of the first restart."""
    rig.put("a", "b", "c")
    rig.store.release([job.ref for job in rig.take(3)])
    place.remember()
    mark = place.mark
    fences: list[int] = []
    for _ in range(3):
        place.mark = mark
        place.come_back()
        rig.store.reassert("w1", [], [])
        jobs = rig.take(3)
        assert len(jobs) == 3
        fences += [job.ref.fence for job in jobs]
    assert len(set(fences)) == 9


def test_a_fence_of_a_forgotten_epoch_pushes_the_epoch_above_it(place: Place, rig: Rig) -> None:
    rig.put("a", "b")
    place.remember()
    mark = place.mark
    place.server.restart()
    rig.client.connection_pool.disconnect()
    rig.store.reassert("w1", [], [])
    job = rig.one()
    place.mark = mark
    place.come_back()
    assert rig.store.reassert("w1", [job], []) == ()
    assert rig.one().ref.fence > job.ref.fence


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
