"""The harness's own servers do what the fault tests will rely on."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from tests.harness import procfs
from tests.harness.address import Listen
from tests.harness.fixtures import OwnServer, delete_fleet
from tests.harness.server import Kind, Server

AOF = {"appendonly": "yes"}


@pytest.mark.parametrize("listen", ["unix", "tcp"])
def test_a_server_answers_at_its_url_and_keeps_it_over_a_restart(
    own_server: OwnServer, listen: Listen
) -> None:
    server = own_server(listen=listen, options=AOF)
    url = server.url
    server.client().set("k", "v")
    server.restart()
    assert server.url == url
    assert server.client().get("k") == b"v"


def test_kill9_keeps_what_the_aof_holds(own_server: OwnServer) -> None:
    server = own_server(options=AOF)
    server.client().set("k", "v")
    server.aof_mark()
    before = server.pid
    server.kill9()
    assert not server.running
    server.start()
    assert server.pid != before
    assert server.client().get("k") == b"v"


@pytest.mark.parametrize("torn_bytes", [0, 5])
def test_the_last_second_can_be_lost(own_server: OwnServer, torn_bytes: int) -> None:
    server = own_server(options=AOF)
    server.client().set("kept", "1")
    mark = server.aof_mark()
    server.client().set("lost", "1")
    assert server.kill9_losing_since(mark, torn_bytes=torn_bytes) > 0
    server.start()
    assert server.client().get("kept") == b"1"
    assert server.client().get("lost") is None


def test_a_paused_server_answers_nothing_and_goes_on_when_resumed(own_server: OwnServer) -> None:
    server = own_server()
    client = server.client(socket_timeout=0.2)
    server.pause()
    with pytest.raises(redis.TimeoutError):
        client.ping()
    server.resume()
    assert server.client().ping()


def test_close_leaves_neither_process_nor_directory() -> None:
    server = Server().start()
    process, directory = server.proc.id, server.directory
    server.close()
    assert not procfs.is_alive(process)
    assert not directory.exists()


def test_a_server_that_cannot_start_says_why(own_server: OwnServer) -> None:
    with pytest.raises(AssertionError, match="no-such-option"):
        own_server(options={"no-such-option": "1"})


def test_the_shared_server_gives_each_test_a_fleet_of_its_own(client: redis.Redis, fleet: str) -> None:
    client.set(f"{{{fleet}}}:a", 1)
    client.set("{another}:b", 1)
    assert delete_fleet(client, fleet) == 1
    assert client.delete("{another}:b") == 1


@pytest.mark.redis
def test_debians_redis_server_is_one_of_the_kinds(own_server: OwnServer) -> None:
    server = own_server(Kind.REDIS, options=AOF)
    assert "redis_version" in server.client().info("server")
    mark = server.aof_mark()
    server.client().set("lost", "1")
    server.kill9_losing_since(mark)
    assert server.start().client().get("lost") is None


def test_servers_live_in_short_paths(shared_server: Server) -> None:
    assert len(str(Path(shared_server.socket_path))) < 80
