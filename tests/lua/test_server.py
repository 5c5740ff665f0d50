"""What servers do to a store: eviction, full memory, access lists, flushed scripts, old versions, silence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
import redis
from tests.harness.fixtures import OwnServer
from tests.harness.server import Kind, Server
from tests.harness.wait import wait_until
from tests.lua.rig import CLOCK, Rig, outcome, settings

from tidegate.config import BrokerSettings, Settings
from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.domain.job import OutcomeKind, Settled, SettleWord
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted, Full
from tidegate.store import Store
from tidegate.store.script import load
from tidegate.store.start import check_server

ServerRig = Callable[..., tuple[Server, Rig]]


@pytest.fixture
def server_rig(own_server: OwnServer) -> Iterator[ServerRig]:
    """A server of one's own and a fleet on it."""
    rigs: list[Rig] = []

    def make(kind: Kind = Kind.VALKEY, **options: str) -> tuple[Server, Rig]:
        server = own_server(kind, options={name.replace("_", "-"): value for name, value in options.items()})
        rig = Rig(server.client(), server.url, settings("fleet", enqueue_timeout=1.0))
        rig.worker()
        rigs.append(rig)
        return server, rig

    yield make
    for rig in rigs:
        rig.close()


# -- start checks


def test_eviction_is_refused(server_rig: ServerRig) -> None:
    server, rig = server_rig()
    rig.client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(StoreRefused, match=r"allkeys-lru.*noeviction") as caught:
        Store.open(settings("fleet"), url=server.url)
    assert caught.value.exit_code == 4
    allowed = Settings(broker=BrokerSettings(allow_eviction=True))
    Store.open(allowed, url=server.url).close()


@pytest.mark.parametrize(
    ("info", "old"),
    [
        ({"redis_version": "6.2.14"}, True),
        ({"redis_version": "7.0.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.5"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, False),
        ({"redis_version": "10.1.0"}, False),
        ({}, True),
    ],
)
def test_versions(info: dict[str, str], old: bool) -> None:
    answer = {"maxmemory_policy": "noeviction", **info}
    if old:
        with pytest.raises(StoreRefused, match="too old"):
            check_server(answer, Settings(), "redis://x")
    else:
        check_server(answer, Settings(), "redis://x")


def test_a_server_without_a_file_is_a_warning(
    caplog: pytest.LogCaptureFixture, server_rig: ServerRig
) -> None:
    server_rig()
    assert "no append-only file" in caplog.text


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("sentinel://a,b/main", "not supported by this release"),
        ("http://x", "not supported"),
    ],
)
def test_urls_that_name_no_server(url: str, what: str) -> None:
    with pytest.raises(StoreRefused, match=what):
        Store.open(settings("fleet"), url=url)


def test_a_server_that_is_not_there(tmp_path: Any) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        Store.open(settings("fleet", enqueue_timeout=0.2), url=f"unix://{tmp_path}/none.sock")
    assert caught.value.exit_code == 3
    assert not caught.value.maybe_done


def test_a_server_that_is_frozen_is_given_up_in_time(server_rig: ServerRig) -> None:
    server, rig = server_rig()
    rig.put("op")
    server.pause()
    for sent in (True, False):  # the second time not even the handshake is answered
        begin = time.monotonic()
        with pytest.raises(StoreUnavailable) as caught:
            rig.put("lost")
        assert time.monotonic() - begin < 2.5
        assert caught.value.maybe_done is sent
    server.resume()
    wait_until(lambda: rig.state("op") is State.WAITING, "the server to answer again")


# -- full memory


def fill(server: Server, rig: Rig) -> None:
    used = rig.client.info("memory")["used_memory"]
    rig.client.config_set("maxmemory", used - 10_000)


def test_under_full_memory_nothing_comes_in_and_everything_can_end(server_rig: ServerRig) -> None:
    server, rig = server_rig()
    rig.put("a", "b", "c", "d")
    rig.put("later", delay_ms=1_000)
    jobs = rig.take(3)
    before = rig.dump().jobs
    fill(server, rig)
    (full,) = rig.put("more")
    assert isinstance(full, Full)
    assert full.scope == "store"
    with pytest.raises(StoreRefused, match="maxmemory"):
        rig.claim(1)
    assert rig.dump().jobs == before
    assert rig.end(jobs[0]) is SettleWord.OK
    assert rig.end(jobs[1], OutcomeKind.FAILED) is SettleWord.OK
    assert rig.store.extend("w1", [jobs[2].ref]).lost == ()
    assert rig.store.release([jobs[2].ref]) == [SettleWord.OK]
    rig.tick(1_000)
    rig.store.reap()
    assert rig.store.promote() == 1
    rig.store.reassert("w1", [], [Settled(jobs[0].head, outcome(jobs[0]))])
    rig.worker("w2")
    rig.store.unregister("w2")
    assert rig.store.snapshot().queues["default"].waiting == 3
    Store.open(settings("fleet", history_jobs=5), url=server.url).close()
    rig.client.config_set("maxmemory", 0)
    rig.store.reap()
    assert len(rig.take(8)) == 3


def test_enqueue_stops_at_85_percent_so_that_the_rest_has_room(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    rig.put("op")
    used = rig.client.info("memory")["used_memory"]
    rig.client.config_set("maxmemory", int(used / 0.80))
    rig.store.reap()
    assert isinstance(rig.put("fits")[0], Accepted)
    rig.client.config_set("maxmemory", int(rig.client.info("memory")["used_memory"] / 0.90))
    rig.store.reap()
    (full,) = rig.put("does not")
    assert isinstance(full, Full)
    assert (full.scope, full.retry_after) == ("store", 1.0)
    assert len(rig.take(8)) == 2, "claims go on"
    rig.client.config_set("maxmemory", 0)
    rig.store.reap()
    assert isinstance(rig.put("fits again")[0], Accepted)


# -- access lists


@pytest.mark.parametrize(
    "commands",
    [["+@all", "-@admin", "-@dangerous", "+info"], ["+@all", "-@dangerous", "+info", "-fcall", "-function"]],
    ids=["functions", "scripts"],
)
def test_a_user_of_our_keys_only_can_do_everything(server_rig: ServerRig, commands: list[str]) -> None:
    server, rig = server_rig()
    rig.client.acl_setuser(
        "tidegate",
        enabled=True,
        passwords=["+secret"],
        keys=["{fleet}:*"],
        channels=["{fleet}:*"],
        commands=commands,
    )
    url = server.url.replace("unix://", "unix://tidegate:secret@")
    theirs = Rig(rig.client, url, settings("fleet"))
    try:
        theirs.worker("w2")
        theirs.put("a", "b", "c", resources=("key:x",))
        theirs.put("later", delay_ms=500, idempotency_key="k")
        one, two, three = theirs.take(3, worker="w2")
        assert theirs.store.extend("w2", [one.ref]).lost == ()
        theirs.end(one)
        theirs.end(two, OutcomeKind.FAILED)
        theirs.store.release([three.ref])
        theirs.live(1_000)
        theirs.store.reassert("w2", [], [])
        theirs.limits()
        assert theirs.store.snapshot().queues["default"].waiting == 2
        assert theirs.state("later") is State.WAITING
        theirs.store.unregister("w2")
        with pytest.raises(StoreRefused):
            Store.open(settings("other"), url=url)
    finally:
        theirs.close()


def test_a_wrong_password_says_so(server_rig: ServerRig) -> None:
    server, rig = server_rig()
    rig.client.acl_setuser("somebody", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    wrong = server.url.replace("unix://", "unix://somebody:wrong@")
    with pytest.raises((StoreUnavailable, StoreRefused), match=r"(?i)password|auth"):
        Store.open(settings("fleet", enqueue_timeout=0.3), url=wrong)


# -- scripts


def test_flushed_scripts_are_sent_again(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    for operation in ("a", "b"):
        rig.forget_scripts()
        rig.put(operation)
        rig.forget_scripts()
        job = rig.one()
        rig.forget_scripts()
        assert rig.end(job) is SettleWord.OK


def test_a_bulk_after_a_flush(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    rig.forget_scripts()
    assert all(isinstance(v, Accepted) for v in rig.put(*[""] * 350))
    assert len(rig.dump().jobs) == 350


def test_scripts_that_only_read_cannot_write(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    source = load("job").source.replace("return {'none'}", "call('SET', P .. 'x', 1) return {'none'}")
    run = rig.client.info("server")["run_id"]
    with pytest.raises(redis.ResponseError, match=r"(?i)write commands are not allowed"):
        rig.client.eval(source, 1, rig.store.key_prefix, "c", 1, run, "op", "-")


def test_idle_connections_that_a_restart_broke(server_rig: ServerRig) -> None:
    """The first call of each kind after a restart works: nobody has to fail once."""
    server, rig = server_rig(appendonly="yes")
    rig.put("op")
    for call in (rig.store.snapshot, rig.store.reap, lambda: rig.put(""), lambda: rig.state("op")):
        server.restart()
        rig.client.connection_pool.disconnect()
        call()


def test_a_line_survives_a_killed_connection(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    rig.put("warm-up")
    for n in range(5):
        rig.client.client_kill_filter(_type="normal", skipme=True)
        assert isinstance(rig.put(f"op-{n}")[0], Accepted)
    assert len(rig.dump().jobs) == 6


def test_requests_of_one_line_are_numbered(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    (line,) = rig.store._idle
    before = line._request
    rig.put("a")
    rig.put("b")
    assert line._request == before + 2


@pytest.mark.redis
def test_the_distributions_redis_does_the_same(server_rig: ServerRig) -> None:
    _, rig = server_rig(Kind.REDIS)
    rig.put("a", "b", "c", idempotency_key=None, resources=("key:x",))
    rig.put("later", delay_ms=1_000)
    one, two, three = rig.take(8)
    assert [rig.end(one), rig.end(two, OutcomeKind.FAILED), rig.end(three, OutcomeKind.RELEASE)] == [
        SettleWord.OK
    ] * 3
    rig.live(1_000)
    assert sorted(job.operation_id for job in rig.take(8)) == ["c", "later"]
    assert rig.now == CLOCK + 1_000


def test_a_waiting_job_with_a_key_takes_its_body_and_900_bytes(server_rig: ServerRig) -> None:
    _, rig = server_rig()
    number, body = 9_900, b"x" * 200
    rig.put("warm-up", idempotency_key="warm-up")
    before = rig.client.info("memory")["used_memory"]
    jobs = [
        rig.job(
            str(uuid4()), task="reports.fetch", task_id=str(uuid4()), envelope=body, idempotency_key=f"k{n}"
        )
        for n in range(number)
    ]
    assert all(isinstance(v, Accepted) for v in rig.store.enqueue(jobs, timeout=60))
    each = (rig.client.info("memory")["used_memory"] - before) / number
    assert each <= len(body) + 900


def test_threads_share_a_store(server_rig: ServerRig) -> None:
    _, rig = server_rig()

    def produce(thread: int) -> list[Any]:
        return [v for n in range(25) for v in rig.store.enqueue([rig.job(f"{thread}-{n}")])]

    with ThreadPoolExecutor(8) as pool:
        verdicts = [v for part in pool.map(produce, range(8)) for v in part]
    assert sorted(v.position for v in verdicts) == list(range(1, 201))
    assert len(rig.dump().jobs) == 200
