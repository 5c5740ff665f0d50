"""init, configure, clock, snapshot, job: a fleet as a whole, and how processes agree about it."""

from __future__ import annotations

import pytest
from tests.harness.server import Server
from tests.lua.conftest import MakeRig
from tests.lua.rig import CLOCK, UNLIMITED, Rig, limit, settings

from tidegate.config import QueueSettings, Settings, TenantSettings
from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import OutcomeKind, Pressure, Priority, SettleWord
from tidegate.domain.states import Reason, State
from tidegate.store import Store

ONE_AT_A_TIME = {"default": TenantSettings(max_concurrency=1, rate=None, max_depth=None)}


def lim(rig: Rig) -> dict[str, str]:
    found: dict[str, str] = rig.dump().get("lim", {})
    return found


# -- init


def test_the_first_process_makes_the_fleet_and_the_others_join(make: MakeRig) -> None:
    one = make()
    meta = one.dump()["meta"]
    two = make()
    assert two.dump()["meta"] == meta
    one.put("op")
    assert two.state("op") is State.WAITING


def test_fleets_on_one_server_do_not_meet(make: MakeRig, shared_server: Server, fleet: str) -> None:
    rig = make()
    other = Store.open(settings(f"{fleet}.other"), url=shared_server.url, clock_ms=CLOCK)
    try:
        rig.put("op")
        assert other.state("op") is None
        assert other.snapshot().queues["default"].waiting == 0
    finally:
        other.close()
        rig.client.delete(*rig.client.scan_iter(f"{other.key_prefix}*"))


def test_nothing_of_one_call_is_left_for_the_next(make: MakeRig, shared_server: Server, fleet: str) -> None:
    """The server keeps our functions loaded; what they remember of a call must end with it."""
    mine = make(queues={"default": QueueSettings(max_depth=1)}, tenants=ONE_AT_A_TIME)
    theirs = Rig(mine.client, shared_server.url, settings(f"{fleet}.other"))
    try:
        mine.worker()
        theirs.worker()
        for n in range(3):
            assert [type(v).__name__ for v in theirs.put("", "", "")] == ["Accepted"] * 3
            assert [type(v).__name__ for v in mine.put("", "")] == (
                ["Accepted", "Full"] if n == 0 else ["Full"] * 2
            )
            assert (len(theirs.take(3)), len(mine.take(3))) == (3, int(n == 0))
            theirs.tick(100)
        assert mine.now == CLOCK
        mine.client.delete(f"{theirs.store.key_prefix}meta")
        with pytest.raises(StoreRefused, match="records are gone"):
            theirs.put("")
    finally:
        theirs.close()
        mine.client.delete(*mine.client.scan_iter(f"{theirs.store.key_prefix}*"), "x")


@pytest.mark.parametrize(("schema", "said"), [(3, "is 3, newer than 2"), (1, "is 1, older than 2")])
def test_another_key_schema_is_refused(make: MakeRig, schema: int, said: str) -> None:
    rig = make()
    rig.client.hset(f"{rig.store.key_prefix}meta", "schema", schema)
    with pytest.raises(StoreRefused, match=said):
        make()
    rig.client.hset(f"{rig.store.key_prefix}meta", "schema", 2)


def test_a_refused_start_leaves_the_store_as_it_was(make: MakeRig) -> None:
    rig = make()
    rig.client.hset(f"{rig.store.key_prefix}meta", "schema", "3")
    before = dict(rig.dump().items())
    with pytest.raises(StoreRefused):
        make(queues={"new": QueueSettings()})
    assert dict(rig.dump().items()) == before
    rig.client.hset(f"{rig.store.key_prefix}meta", "schema", "2")


# -- the clock


def test_a_fleet_on_the_servers_clock_never_takes_another(
    make: MakeRig, shared_server: Server, client: object, fleet: str
) -> None:
    real = Store.open(settings(fleet), url=shared_server.url)
    try:
        with pytest.raises(StoreRefused, match="runs on the server's clock"):
            real.advance_clock(1_000)
        with pytest.raises(StoreRefused, match="runs on the server's clock for ever"):
            Store.open(settings(fleet), url=shared_server.url, clock_ms=CLOCK)
    finally:
        real.close()


def test_a_test_clock_moves_only_when_told(make: MakeRig) -> None:
    rig = make()
    assert (rig.now, rig.tick(1_500), rig.now) == (CLOCK, CLOCK + 1_500, CLOCK + 1_500)
    assert rig.tick(-500) == CLOCK + 1_000


def test_a_lost_reply_moves_the_clock_once(make: MakeRig) -> None:
    rig = make()
    rig.tick(1)
    rig.lose_reply()
    assert rig.tick(1_000) == CLOCK + 1_001
    assert rig.now == CLOCK + 1_001


# -- configure


def test_a_tool_replaces_limits_and_a_producer_only_fills_an_empty_store(
    make: MakeRig, shared_server: Server, fleet: str
) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=7)})
    producer = Store.open(settings(fleet), "producer", url=shared_server.url)
    producer.close()
    assert lim(rig)["queue:default"] == limit(depth=7)
    worker = Store.open(settings(fleet), "worker", url=shared_server.url)
    worker.close()
    assert lim(rig)["queue:default"] == limit(depth=10_000)


def test_a_producer_alone_brings_its_limits(shared_server: Server, make: MakeRig, fleet: str) -> None:
    producer = Store.open(
        settings(fleet, queues={"default": QueueSettings(max_depth=1)}),
        "producer",
        url=shared_server.url,
        clock_ms=CLOCK,
    )
    producer.close()
    rig = make(queues={"default": QueueSettings(max_depth=1)})
    assert lim(rig)["queue:default"] == limit(depth=1)


def test_settings_that_say_the_same_change_nothing(make: MakeRig) -> None:
    rig = make()
    rig.worker()
    rig.limits(dep=limit(conc=1))
    rig.put("a", "b", resources=("dep:x",))
    rig.take(2)
    rig.take(2)
    before = dict(rig.dump().items())
    rig._digests -= 1
    rig.limits()
    assert dict(rig.dump().items()) == before


def test_a_restart_with_other_limits_wakes_who_waits(make: MakeRig) -> None:
    rig = make(tenants=ONE_AT_A_TIME)
    rig.worker()
    rig.put("a", "b", "c")
    assert len(rig.take(8)) == 1
    assert rig.take(8) == ()
    make()
    assert len(rig.take(8)) == 2


def test_names_that_left_the_settings_fall_back_to_the_default(make: MakeRig) -> None:
    make(tenants={"a": TenantSettings(max_concurrency=7)})
    rig = make(tenants={"default": UNLIMITED})
    assert "tenant:a" not in lim(rig)


def test_the_length_of_a_lease_follows_the_settings(make: MakeRig) -> None:
    make(lease=30.0)
    rig = make(lease=5.0)
    rig.worker()
    rig.put("op")
    rig.one()
    assert set(rig.dump()["leases"].values()) == {CLOCK + 5_000}


# -- questions


def test_a_snapshot_counts_by_queue_and_state(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=10), "empty": QueueSettings()})
    rig.worker()
    rig.put("r", "f", "x", "w1", "w2")
    running, failed, dead = rig.take(3)
    rig.end(failed, OutcomeKind.FAILED, Reason.ERROR)
    rig.end(dead, OutcomeKind.UNDELIVERABLE, Reason.UNDECODABLE)
    rig.put("d", delay_ms=60_000)
    rig.put("elsewhere", queue="wild")
    rig.end(failed)
    rig.tick(2_500)
    snapshot = rig.store.snapshot()
    counts = snapshot.queues["default"]
    assert (counts.waiting, counts.delayed, counts.running, counts.failed, counts.dead) == (2, 1, 1, 1, 1)
    assert (counts.depth, counts.limit, counts.oldest_age_ms) == (5, 10, 2_500)
    assert snapshot.queues["empty"].waiting == snapshot.queues["empty"].oldest_age_ms == 0
    assert snapshot.queues["wild"].waiting == 1
    assert (snapshot.failed, snapshot.dead, snapshot.stale_reports, snapshot.leases_expired) == (1, 1, 1, 0)
    assert [worker.worker_id for worker in snapshot.workers] == ["w1"]
    assert rig.end(running) is SettleWord.OK


def test_pressure_of_a_queue(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=10)})
    seen = []
    for _ in range(10):
        rig.put("")
        seen.append(rig.store.snapshot().queues["default"].pressure)
    assert seen == [Pressure.GREEN] * 6 + [Pressure.YELLOW] * 2 + [Pressure.RED] * 2


def test_the_oldest_age_is_of_what_waits(rig: Rig) -> None:
    def age() -> int:
        return rig.store.snapshot().queues["default"].oldest_age_ms

    rig.put("later", delay_ms=10_000)
    rig.tick(9_000)
    assert age() == 0, "what is not due does not wait"
    rig.put("a")
    rig.put("b", tenant="b")
    rig.tick(1_000)
    rig.store.promote()
    rig.tick(90_000)
    assert age() == 91_000
    jobs = rig.take(2)
    assert age() == 90_000
    rig.end(jobs[0], OutcomeKind.RELEASE)
    assert age() == 91_000
    rig.take(4)
    assert age() == 0, "all slots busy and none waiting"


def test_a_priority_moves_no_age(rig: Rig) -> None:
    def age() -> int:
        return rig.store.snapshot().queues["default"].oldest_age_ms

    rig.put("urgent", priority=Priority.URGENT)
    assert age() == 0
    rig.end(rig.one())
    rig.put("low", priority=Priority.LOW)
    rig.tick(30_000)
    assert age() == 30_000


def test_a_job_is_shown_whole(rig: Rig) -> None:
    rig.put(
        "op",
        step="s",
        tenant="a",
        task="t",
        task_id="id",
        envelope=b"\xffbody",
        priority=Priority.HIGH,
        delay_ms=500,
        deadline_ms=CLOCK + 9_000,
    )
    job = rig.store.job("op", "s")
    assert job
    assert (job.operation_id, job.step, job.queue, job.tenant, job.task, job.task_id) == (
        "op",
        "s",
        "default",
        "a",
        "t",
        "id",
    )
    assert (job.state, job.attempt, job.charged, job.crashes, job.reason) == (State.DELAYED, 0, 0, 0, "")
    assert (job.created_ms, job.eligible_ms, job.deadline_ms) == (CLOCK, CLOCK + 500, CLOCK + 9_000)
    assert job.envelope == b"\xffbody"


def test_questions_about_nobody(rig: Rig) -> None:
    assert rig.store.job("nobody") is None
    assert rig.store.state("nobody", "step") is None


def test_reading_writes_nothing(rig: Rig) -> None:
    rig.put("op")
    before = dict(rig.dump().items())
    rig.store.snapshot()
    rig.store.job("op")
    rig.store.state("op")
    assert dict(rig.dump().items()) == before


def test_the_defaults_of_a_fleet_without_settings_are_limits() -> None:
    assert Settings().tenant("anybody").max_concurrency == 10
