"""The exporter through outages, restarts and odd clients."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.server import Server
from tests.harness.wait import wait_until
from tests.integration.observe.conftest import MakeRig, get, scrape, series, settings
from tests.lua.rig import Rig

from tidegate import __version__
from tidegate.config import ConfigError
from tidegate.observe import CannotListen, Exporter
from tidegate.store import Store

DOWN = {("tidegate_store_up", ()): 0.0, ("tidegate_build_info", (("version", __version__),)): 1.0}


def test_what_the_paths_answer(url: str) -> None:
    assert get(f"{url}/healthz")[0] == get(f"{url}/readyz")[0] == get(f"{url}/")[0] == 200
    for path in ("/metric", "/metrics/", "/metrics/x", "/healthz/..", "/%2e%2e/etc/passwd"):
        assert get(url + path)[0] == 404, path
    for path in ("/metrics", "/healthz", "/readyz"):
        assert get(url + path, "POST")[0] == 405, path
    assert get(f"{url}/healthz", "HEAD") == (200, "")


def test_a_scraper_may_choose_by_name(url: str) -> None:
    _, text = get(f"{url}/metrics?name[]=tidegate_store_up")
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["tidegate_store_up 1.0"]


def test_a_store_that_died_leaves_no_stale_number_and_its_return_is_seen(
    make_rig: MakeRig, own_server: OwnServer
) -> None:
    server = own_server(options={"appendonly": "yes"})
    rig = make_rig(server, "mortal")
    rig.worker()
    rig.put("op")
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        assert series(scrape(exporter.url), "queue_depth", queue="default", state="waiting") == 1
        server.stop()
        for _ in range(2):
            assert scrape(exporter.url) == DOWN
        assert get(f"{exporter.url}/readyz")[0] == 503
        assert get(f"{exporter.url}/healthz")[0] == 200
        server.start()
        found = scrape(exporter.url)
        assert series(found, "store_up") == 1
        assert series(found, "queue_depth", queue="default", state="waiting") == 1
        assert get(f"{exporter.url}/readyz")[0] == 200
        rig.store.reap()  # whoever writes first notices the new server
        assert series(scrape(exporter.url), "store_reset_total") == 1


def test_a_frozen_store_is_a_scrape_within_the_usual_ten_seconds(
    make_rig: MakeRig, own_server: OwnServer
) -> None:
    server = own_server()
    rig = make_rig(server, "frozen")
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        server.pause()
        start = time.monotonic()
        assert scrape(exporter.url) == DOWN
        assert time.monotonic() - start < 8
        assert get(f"{exporter.url}/healthz")[0] == 200
        server.resume()
        assert series(scrape(exporter.url), "store_up") == 1


def test_a_store_that_lost_everything_is_not_up(make_rig: MakeRig, own_server: OwnServer) -> None:
    rig = make_rig(own_server(), "flushed")
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        rig.client.flushall()
        assert scrape(exporter.url) == DOWN
        assert get(f"{exporter.url}/readyz")[0] == 503


def test_an_outage_is_logged_once_with_its_end(
    make_rig: MakeRig, own_server: OwnServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_server()
    rig = make_rig(server, "logged")
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        server.stop()
        for _ in range(3):
            scrape(exporter.url)
        server.start()
        rig.store.close()
        Store.open(
            rig.settings, url=server.url, clock_ms=1
        ).close()  # nothing was kept: the fleet begins anew
        for _ in range(2):
            scrape(exporter.url)
    said = [r.getMessage() for r in caplog.records if r.name == "tidegate.observe.collector"]
    assert [text.partition(":")[0] for text in said] == [
        "no numbers until the store answers",
        "the store answers again",
    ]


def test_stop_frees_the_address_and_start_takes_it_again(rig: Rig) -> None:
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        address = urlsplit(exporter.url).netloc
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", int(address.rpartition(":")[2])))
    fixed = replace(rig.settings, observability=replace(rig.settings.observability, metrics_address=address))
    again = Exporter(rig.store, fixed, __version__)
    for _ in range(2):
        again.start()
        assert again.url == f"http://{address}"
        assert series(scrape(again.url), "store_up") == 1
        again.stop()
    again.stop()


def test_an_address_in_use_says_what_to_do_and_harms_nobody(rig: Rig, url: str) -> None:
    taken = urlsplit(url).netloc
    same = replace(rig.settings, observability=replace(rig.settings.observability, metrics_address=taken))
    second = Exporter(rig.store, same, __version__)
    with pytest.raises(CannotListen, match=f"{taken}: Address already in use; .*metrics_address") as caught:
        second.start()
    second.stop()
    assert caught.value.exit_code == 1
    assert series(scrape(url), "store_up") == 1


@pytest.mark.parametrize(
    ("address", "error"), [("127.0.0.1:65536", ConfigError), ("203.0.113.1:9464", CannotListen)]
)
def test_an_address_that_cannot_be(rig: Rig, address: str, error: type[Exception]) -> None:
    wrong = replace(rig.settings, observability=replace(rig.settings.observability, metrics_address=address))
    with pytest.raises(error, match=r"65536|203\.0\.113\.1"):
        Exporter(rig.store, wrong, __version__).start()


def test_silent_clients_hold_up_neither_scrapes_nor_the_end(
    shared_server: Server, fleet: str, make_rig: MakeRig
) -> None:
    rig = make_rig(shared_server, fleet)
    exporter = Exporter(rig.store, settings(fleet), __version__)
    exporter.start()
    parts = urlsplit(exporter.url)
    silent = [socket.create_connection((parts.hostname, parts.port)) for _ in range(5)]
    silent[0].sendall(b"GET /metr")
    wait_until(lambda: series(scrape(exporter.url), "store_up") == 1, "a scrape beside silent clients")
    start = time.monotonic()
    exporter.stop()
    assert time.monotonic() - start < 3
    for one in silent:
        one.close()
