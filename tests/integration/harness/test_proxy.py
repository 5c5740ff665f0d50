"""The proxy does exactly what it is told, and the server behind it is the witness."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from tests.harness.address import Listen
from tests.harness.fixtures import MakeProxy, OwnServer
from tests.harness.link import Part
from tests.harness.proxy import Proxy
from tests.harness.server import Server
from tests.harness.wait import wait_until


@pytest.fixture(params=["unix", "tcp"])
def proxy(request: pytest.FixtureRequest, shared_server: Server) -> Iterator[Proxy]:
    listen: Listen = request.param
    with Proxy(shared_server.url, listen=listen) as proxy:
        yield proxy


@contextmanager
def through(proxy: Proxy, timeout: float = 5.0, protocol: int = 3) -> Iterator[redis.Redis]:
    retry = Retry(NoBackoff(), 0)
    client = redis.Redis.from_url(
        proxy.url, retry=retry, socket_timeout=timeout, protocol=protocol, max_connections=1
    )
    yield client
    client.close()


@pytest.mark.parametrize("protocol", [2, 3])
def test_it_forwards_and_counts(proxy: Proxy, fleet: str, protocol: int) -> None:
    key = f"{{{fleet}}}:k"
    with through(proxy, protocol=protocol) as client:
        client.set(key, b"\r\n\x00" * 50_000)
        assert client.get(key) == b"\r\n\x00" * 50_000
        pipe = client.pipeline()
        for _ in range(100):
            pipe.incr(f"{key}:n")
        pipe.hset(f"{key}:h", mapping={"a": "1"})
        pipe.hgetall(f"{key}:h")
        assert pipe.execute()[-1] == {b"a": b"1"}
        assert (proxy.connected, proxy.accepted) == (1, 1)
    assert proxy.forwarded["SET"] == 1
    assert proxy.forwarded["INCRBY"] == 100
    assert proxy.forwarded["EXEC"] == 1
    wait_until(lambda: proxy.connected == 0, "the end of the connection")


def test_pubsub_goes_through(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    for protocol in (2, 3):
        with through(proxy, protocol=protocol) as listener, listener.pubsub() as channel:  # type: ignore[no-untyped-call]
            channel.subscribe(fleet)
            wait_until(lambda: channel.get_message(timeout=0.1), "the subscription")
            for number in range(3):
                client.publish(fleet, number)
                message = wait_until(lambda: channel.get_message(timeout=0.1), "a message")
                assert message["data"] == str(number).encode()


def test_a_lost_reply_was_carried_out(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    key = f"{{{fleet}}}:n"
    with through(proxy) as victim:
        loss = proxy.lose_reply("incrby", after=3)
        assert [victim.incr(key), victim.incr(key)] == [1, 2]
        with pytest.raises(redis.ConnectionError):
            victim.incr(key)
        assert loss.wait().value == [b"INCRBY", key.encode(), b"1"]
        assert client.get(key) == b"3"
        assert victim.incr(key) == 4, "only one reply is lost"


def test_a_lost_request_was_not_carried_out(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    key = f"{{{fleet}}}:n"
    with through(proxy) as victim:
        for keep in (0, 1, 10):
            loss = proxy.lose_request("INCRBY", keep=keep)
            with pytest.raises(redis.ConnectionError):
                victim.incr(key)
            loss.wait()
        assert client.get(key) is None
        assert victim.incr(key) == 1
    assert proxy.forwarded["INCRBY"] == 1


def test_a_reply_cut_in_the_middle_is_no_reply(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    key = f"{{{fleet}}}:n"
    client.set(key, "0123456789")
    with through(proxy) as victim:
        loss = proxy.lose_reply("GET", keep=8)
        with pytest.raises(redis.ConnectionError):
            victim.get(key)
        loss.wait()
        assert victim.get(key) == b"0123456789"


def test_replies_before_the_lost_one_arrive(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    """A pipeline cut at its 5th command: all ten ran, four answers came."""
    key = f"{{{fleet}}}:n"
    with through(proxy) as victim:
        pipe = victim.pipeline(transaction=False)
        for _ in range(10):
            pipe.incr(key)
        victim.ping()
        loss = proxy.lose_reply("INCRBY", after=5, keep=1)
        with pytest.raises(redis.ConnectionError):
            pipe.execute()
        loss.wait()
    wait_until(lambda: client.get(key) == b"10", lambda: f"ten increments, {client.get(key)!r} so far")


def test_a_command_can_be_chosen_by_its_arguments(proxy: Proxy, fleet: str) -> None:
    with through(proxy) as victim:
        loss = proxy.lose_reply(lambda frame: frame.command == "SET" and frame.value[2] == b"7")
        for number in range(7):
            assert victim.set(f"{{{fleet}}}:{number}", number)
        with pytest.raises(redis.ConnectionError):
            victim.set(f"{{{fleet}}}:7", 7)
        assert loss.wait().value[2] == b"7"


def test_an_order_that_is_not_met_says_so(proxy: Proxy) -> None:
    with through(proxy) as client:
        loss = proxy.lose_reply("PING", after=3)
        client.ping()
        with pytest.raises(AssertionError, match="matched 1 commands so far"):
            loss.wait(timeout=0.01)
        proxy.heal()
        for _ in range(5):
            assert client.ping()


def test_cut_ends_every_connection_also_a_waiting_one(proxy: Proxy, fleet: str) -> None:
    failed = threading.Event()

    def wait_for_work() -> None:
        with through(proxy, timeout=30) as client, pytest.raises(redis.ConnectionError):
            client.blpop([f"{{{fleet}}}:list"], timeout=20)
        failed.set()

    waiter = threading.Thread(target=wait_for_work)
    waiter.start()
    wait_until(lambda: proxy.forwarded["BLPOP"] == 1, "a waiting client")
    assert proxy.cut() == 1
    assert failed.wait(10)
    waiter.join()
    with through(proxy) as client:
        assert client.ping(), "new connections are accepted"


def test_half_open_swallows_both_ways_and_closes_nothing(
    proxy: Proxy, fleet: str, client: redis.Redis
) -> None:
    key = f"{{{fleet}}}:n"
    with through(proxy, timeout=0.2) as victim:
        victim.incr(key)
        assert proxy.half_open() == 1
        with pytest.raises(redis.TimeoutError):
            victim.incr(key)
        assert client.get(key) == b"1"
        assert proxy.connected == 1
        assert victim.incr(key) == 2, "a new connection works"
        proxy.half_open(new=True)
        with pytest.raises(redis.TimeoutError):
            victim.incr(key)
        with pytest.raises(redis.TimeoutError):
            victim.incr(key)
        proxy.heal()
        wait_until(lambda: victim.incr(key) >= 3, "a connection after the cure")


def test_delay_keeps_order_and_content(proxy: Proxy) -> None:
    with through(proxy) as client:
        client.ping()
        for part in (None, Part.REQUEST, Part.REPLY):
            proxy.delay(0.1, part=part)
            start = time.monotonic()
            assert client.echo("a") == b"a"
            assert time.monotonic() - start >= (0.2 if part is None else 0.1)
            proxy.delay(0)
        start = time.monotonic()
        assert client.echo("b") == b"b"
        assert time.monotonic() - start < 0.1


def test_a_delayed_request_arrives_although_its_client_has_gone(
    proxy: Proxy, fleet: str, client: redis.Redis
) -> None:
    key = f"{{{fleet}}}:n"
    with through(proxy, timeout=0.05) as victim:
        victim.ping()
        proxy.delay(0.3, part=Part.REQUEST)
        with pytest.raises(redis.TimeoutError):
            victim.incr(key)
    assert client.get(key) is None
    wait_until(lambda: client.get(key) == b"1", "the delayed command")


def test_refuse_turns_new_connections_away_until_healed(proxy: Proxy) -> None:
    with through(proxy) as old:
        old.ping()
        proxy.refuse()
        assert old.ping(), "present connections go on"
        with through(proxy) as new:
            with pytest.raises(redis.ConnectionError):
                new.ping()
            proxy.heal()
            assert new.ping()


def test_a_dead_server_looks_dead_and_comes_back(own_server: OwnServer, make_proxy: MakeProxy) -> None:
    server = own_server()
    with through(make_proxy(server.url)) as client:
        client.ping()
        server.kill9()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        with pytest.raises(redis.ConnectionError):
            client.ping()
        server.start()
        assert client.ping()


def test_many_clients_at_once(proxy: Proxy, fleet: str, client: redis.Redis) -> None:
    def work() -> None:
        with through(proxy) as mine:
            for _ in range(100):
                mine.incr(f"{{{fleet}}}:n")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get(f"{{{fleet}}}:n") == b"800"
    assert proxy.forwarded["INCRBY"] == 800
