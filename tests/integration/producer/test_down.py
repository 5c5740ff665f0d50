"""A store that is away: a clear error within fleet.enqueue_timeout, each time, and work again when it is back."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Processes
from tests.harness.wait import quietly, wait_until
from tests.integration.producer.conftest import MakeShop
from tests.integration.producer.shop import Shop

from tidegate import StoreUnavailable, call, enqueue, enqueue_many

TIMEOUT = 0.5
FLEET = 'enqueue_timeout = "500ms"'
#: what a busy machine may add
SLACK = 1.5

WAYS: dict[str, Callable[[Shop], Any]] = {
    "enqueue": lambda shop: enqueue("t"),
    "send_task": lambda shop: shop.app.send_task("t"),
    "delay": lambda shop: shop.app.signature("t").delay(),
}


def refused(way: str, shop: Shop) -> StoreUnavailable:
    start = time.monotonic()
    with pytest.raises(StoreUnavailable) as raised:
        WAYS[way](shop)
    assert time.monotonic() - start < TIMEOUT + SLACK
    assert raised.value.exit_code == 3
    return raised.value


@pytest.mark.parametrize("way", WAYS)
def test_a_frozen_store(make_shop: MakeShop, own_server: OwnServer, way: str) -> None:
    server = own_server()
    shop = make_shop(server=server, fleet=FLEET)
    WAYS[way](shop)
    server.pause()
    first = refused(way, shop)
    assert first.maybe_done, "it was sent, and nobody answered"
    assert "same idempotency key is safe" in str(first)
    for _ in range(2):
        refused(way, shop)  # no growing delay
    server.resume()
    wait_until(quietly(lambda: WAYS[way](shop), StoreUnavailable), "the store to take jobs again", timeout=10)


@pytest.mark.parametrize("way", WAYS)
def test_a_dead_store(make_shop: MakeShop, own_server: OwnServer, way: str) -> None:
    server = own_server(options={"appendonly": "yes"})
    shop = make_shop(server=server, fleet=FLEET)
    WAYS[way](shop)
    server.kill9()
    for _ in range(3):
        refused(way, shop)
    server.start()
    wait_until(quietly(lambda: WAYS[way](shop), StoreUnavailable), "the store to take jobs again", timeout=10)


def test_bulk_gives_up_once_and_says_so_for_each(make_shop: MakeShop, own_server: OwnServer) -> None:
    server = own_server()
    shop = make_shop(server=server, fleet=FLEET)
    enqueue("t")
    server.pause()
    start = time.monotonic()
    found = enqueue_many(call("t", number) for number in range(3000))
    assert time.monotonic() - start < TIMEOUT + SLACK + 2  # the first chunk had to be built
    server.resume()
    assert len(found) == 3000
    assert all(isinstance(one, StoreUnavailable) for one in found)
    assert shop.settings.fleet.enqueue_timeout == TIMEOUT


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


@pytest.mark.parametrize("bulk", [False, True])
def test_a_store_that_never_answered(
    tmp_path: Path, processes: Processes, silent_url: str, bulk: bool
) -> None:
    """From the first line of a fresh process: nothing was connected before."""
    code = f"""
import time
from tidegate import StoreUnavailable, call, enqueue, enqueue_many
for _ in range(2):
    start = time.monotonic()
    try:
        found = enqueue_many([call("t")])[0] if {bulk} else enqueue("t")
    except StoreUnavailable as error:
        found = error
    assert isinstance(found, StoreUnavailable) and not found.maybe_done, found
    assert time.monotonic() - start < {TIMEOUT + SLACK}, time.monotonic() - start
"""
    env = {"TIDEGATE_BROKER_URL": silent_url, "TIDEGATE_FLEET_ENQUEUE_TIMEOUT": "500ms"}
    proc = processes.spawn([sys.executable, "-c", code], env=env, cwd=tmp_path)
    assert proc.wait() == 0, proc.tail()
