"""The fixtures every test may use; tests/conftest.py loads them as a pytest plugin."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
import redis

from . import guard, leak
from .address import Listen
from .book import Ledger
from .processes import Processes
from .proxy import Proxy
from .server import Kind, Server


class MakeProxy(Protocol):
    def __call__(self, upstream: str, *, listen: Listen = "unix") -> Proxy: ...


class OwnServer(Protocol):
    def __call__(
        self, kind: Kind = Kind.VALKEY, *, listen: Listen = "unix", options: Mapping[str, str] | None = None
    ) -> Server: ...


@pytest.fixture(scope="session", autouse=True)
def _no_leftovers() -> Iterator[None]:
    """Ends whatever the fixtures below did not (they should leave nothing)."""
    yield
    guard.close()


@pytest.fixture(scope="session")
def shared_server(_no_leftovers: None) -> Iterator[Server]:
    """One bundled server per xdist worker. To stop, freeze or reconfigure one, take `own_server`."""
    server = Server()
    server.start()
    yield server
    server.close()


@pytest.fixture
def client(shared_server: Server) -> Iterator[redis.Redis]:
    """A plain client of the shared server, without retries."""
    client = shared_server.client()
    yield client
    client.close()


@pytest.fixture
def fleet(shared_server: Server) -> Iterator[str]:
    """A fleet name nobody else uses. Its keys are checked for leaks at the end of the test, then deleted."""
    name = f"t{uuid.uuid4().hex[:12]}"
    client = shared_server.client()
    yield name
    found = leak.complaints(client, name)
    delete_fleet(client, name)
    client.close()
    assert not found, "keys without their declared lifetime:\n" + "\n".join(found)


def delete_fleet(client: redis.Redis, fleet: str) -> int:
    """Delete every key with the hash tag `{fleet}`; returns how many there were."""
    keys = list(client.scan_iter(match=f"*{{{fleet}}}*", count=1000))
    for start in range(0, len(keys), 1000):
        client.unlink(*keys[start : start + 1000])
    return len(keys)


@pytest.fixture
def own_server(_no_leftovers: None) -> Iterator[OwnServer]:
    """Makes started servers that belong to this test alone: kill, freeze and restart them as you like."""
    servers: list[Server] = []

    def make(
        kind: Kind = Kind.VALKEY, *, listen: Listen = "unix", options: Mapping[str, str] | None = None
    ) -> Server:
        server = Server(kind, listen=listen, options=options)
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def make_proxy(_no_leftovers: None) -> Iterator[MakeProxy]:
    """Makes proxies in front of servers: `make_proxy(server.url)`; closed at the end of the test."""
    proxies: list[Proxy] = []

    def make(upstream: str, *, listen: Listen = "unix") -> Proxy:
        proxies.append(Proxy(upstream, listen=listen))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.close()


@pytest.fixture
def processes(tmp_path: Path, _no_leftovers: None) -> Iterator[Processes]:
    """Spawns processes and ends every one of them, with its children, at the end of the test."""
    directory = tmp_path / "processes"
    directory.mkdir()
    mine = Processes(directory)
    yield mine
    mine.close()


@pytest.fixture(scope="session")
def ledger_server(_no_leftovers: None) -> Iterator[Server]:
    """The ledger's own server: no fault ever touches it."""
    server = Server()
    server.start()
    yield server
    server.close()


@pytest.fixture
def ledger(ledger_server: Server, processes: Processes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An empty ledger, known to this process and to everything that `processes` spawns from now on.

    Kills and freezes done through `processes` are recorded in it.
    """
    book = Ledger(ledger_server)
    monkeypatch.setenv(*next(iter(book.env().items())))
    processes.env.update(book.env())
    processes.record = book.record_process
    yield book
    processes.close()
    book.close()
