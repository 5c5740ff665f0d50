"""A server that comes back, with or without its last second: nothing is given or judged until the workers spoke."""

from __future__ import annotations

import pytest
from tests.lua.epoch.place import Place
from tests.lua.rig import LEASE, Rig, outcome

from tidegate.domain.errors import StoreUnavailable
from tidegate.domain.job import SettleWord
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted
from tidegate.store import ReapReply

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
    assert rig.claim().held_ms > 0
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
