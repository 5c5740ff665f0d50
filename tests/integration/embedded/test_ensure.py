"""One server per directory, reached through a private socket, with data that stay."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import redis
from tests.harness.procfs import identify, is_alive
from tests.harness.wait import wait_until
from tests.integration.embedded.conftest import NewDirectory

from tidegate.embedded import EmbeddedError, State, ensure, status, stop, stop_unused
from tidegate.embedded.place import MAX_SOCKET_PATH


def connect(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, single_connection_client=True)


def setting(client: redis.Redis, name: str) -> str:
    return str(client.config_get(name)[name])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_second_call_finds_the_server_of_the_first(data_dir: Path) -> None:
    first = ensure(data_dir)
    second = ensure(data_dir)
    assert first.started
    assert not second.started
    assert (second.url, second.pid) == (first.url, first.pid)
    assert status(data_dir).endpoint == second


def test_it_listens_on_a_private_socket_and_on_no_port(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    assert endpoint.url == f"unix://{data_dir}/valkey.sock"
    with connect(endpoint.url) as client:
        assert setting(client, "port") == "0"
        assert client.info("server")["process_id"] == endpoint.pid
    sockets = Path(f"/proc/{endpoint.pid}/net/unix").read_text()
    assert str(data_dir / "valkey.sock") in sockets
    assert not _listens_on_tcp(endpoint.pid)


def test_every_file_is_for_the_owner_alone(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    with connect(endpoint.url) as client:
        client.set("k", "v")
    assert mode(data_dir) == 0o700
    for path in data_dir.rglob("*"):
        assert mode(path) & 0o077 == 0, path


def test_an_existing_directory_is_closed_to_others(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o755)
    ensure(data_dir)
    assert mode(data_dir) == 0o700


def test_it_keeps_every_write_and_evicts_nothing(data_dir: Path) -> None:
    with connect(ensure(data_dir).url) as client:
        assert setting(client, "appendonly") == "yes"
        assert setting(client, "appendfsync") == "everysec"
        assert setting(client, "maxmemory-policy") == "noeviction"
        assert setting(client, "aof-load-truncated") == "yes"
        assert setting(client, "logfile") == str(data_dir / "valkey.log")


def test_two_directories_are_two_servers(new_directory: NewDirectory) -> None:
    one, two = ensure(new_directory()), ensure(new_directory())
    assert one.pid != two.pid
    with connect(one.url) as client_one, connect(two.url) as client_two:
        client_one.set("k", "v")
        assert client_two.get("k") is None


def test_two_names_of_one_directory_are_one_server(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = data_dir.parent / "link"
    link.symlink_to(data_dir)
    first = ensure(data_dir)
    monkeypatch.chdir(data_dir.parent)
    assert (ensure(link).pid, ensure(link).url) == (first.pid, first.url)
    assert ensure(Path("data")).pid == first.pid


def test_a_path_too_long_for_a_socket_gets_loopback_and_a_password(new_directory: NewDirectory) -> None:
    data_dir = new_directory("d" * MAX_SOCKET_PATH)
    endpoint = ensure(data_dir)
    assert endpoint.url.startswith("redis://:")
    assert mode(data_dir / "valkey.password") == 0o600
    assert mode(data_dir / "valkey.conf") == 0o600
    password = (data_dir / "valkey.password").read_text().strip()
    assert len(password) >= 32
    assert password not in repr(endpoint)
    assert password not in Path(f"/proc/{endpoint.pid}/cmdline").read_text()
    with connect(endpoint.url) as client:
        assert setting(client, "bind") == "127.0.0.1"
        port = setting(client, "port")
        client.set("k", "v")
    with pytest.raises(redis.AuthenticationError), connect(f"redis://127.0.0.1:{port}/0") as stranger:
        stranger.get("k")
    assert ensure(data_dir).pid == endpoint.pid


def test_on_loopback_the_address_outlives_the_server(new_directory: NewDirectory) -> None:
    data_dir = new_directory("d" * MAX_SOCKET_PATH)
    before = ensure(data_dir)
    stop(data_dir)
    after = ensure(data_dir)
    assert after.pid != before.pid
    assert after.url == before.url


@pytest.mark.parametrize("name", ["with space", 'quo"te', "back\\slash", "ünï¢øde", "per%cent", "ha#sh"])
def test_a_directory_may_have_any_name(new_directory: NewDirectory, name: str) -> None:
    with connect(ensure(new_directory(name)).url) as client:
        assert client.set("k", "v")


def test_stop_ends_it_and_ensure_brings_the_data_back(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    with connect(endpoint.url) as client:
        client.set("k", "v")
    process = identify(endpoint.pid)
    assert process is not None
    assert stop(data_dir)
    wait_until(lambda: not is_alive(process), "the end of the server")
    assert status(data_dir).state is State.STOPPED
    assert not stop(data_dir)
    with connect(ensure(data_dir).url) as client:
        assert client.get("k") == b"v"


def test_status_makes_nothing(data_dir: Path) -> None:
    assert status(data_dir).state is State.STOPPED
    assert not stop(data_dir)
    assert not data_dir.exists()


def test_options_reach_the_server_but_not_those_that_are_ours(data_dir: Path) -> None:
    with pytest.raises(ValueError, match="port"):
        ensure(data_dir, options={"port": "6379"})
    with connect(ensure(data_dir, options={"maxmemory": "50mb"}).url) as client:
        assert setting(client, "maxmemory") == str(50 * 1024 * 1024)


def test_an_option_the_server_does_not_know_is_an_error_with_its_words(data_dir: Path) -> None:
    with pytest.raises(EmbeddedError, match="no-such-option") as caught:
        ensure(data_dir, options={"no-such-option": "1"})
    assert caught.value.file == str(data_dir / "valkey.conf")
    assert ensure(data_dir).started, "the failed start must leave nothing in the way"


def test_a_file_in_place_of_the_directory_is_an_error(data_dir: Path) -> None:
    data_dir.write_text("")
    with pytest.raises(EmbeddedError, match="data_dir") as caught:
        ensure(data_dir)
    assert caught.value.file == str(data_dir)


def test_damaged_data_are_an_error_with_the_end_of_the_log(data_dir: Path) -> None:
    with connect(ensure(data_dir).url) as client:
        client.set("k", "v")
    stop(data_dir)
    (aof,) = (data_dir / "appendonlydir").glob("*.incr.aof")
    aof.write_bytes(b"this is not a command\r\n" + aof.read_bytes())
    with pytest.raises(EmbeddedError, match="died while it was starting") as caught:
        ensure(data_dir)
    assert "Bad file format" in caught.value.log_tail
    assert caught.value.file == str(data_dir / "valkey.log")


def _listens_on_tcp(pid: int) -> bool:
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        target = str(entry.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    tables = [Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    return any(row.split()[9] in inodes and row.split()[3] == "0A" for table in tables for row in table)


def test_a_server_that_others_use_is_not_stopped(data_dir: Path) -> None:
    assert not stop_unused(data_dir), "there is none"
    endpoint = ensure(data_dir)
    with connect(endpoint.url) as client:
        client.set("k", "v")
        assert not stop_unused(data_dir)
        assert client.get("k") == b"v"
    assert stop_unused(data_dir), "a client that has gone counts no more"
    assert status(data_dir).state is State.STOPPED
    with connect(ensure(data_dir).url) as client:
        assert client.get("k") == b"v"
