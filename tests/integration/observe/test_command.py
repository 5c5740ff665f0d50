"""`tidegate exporter` as users start it."""

from __future__ import annotations

import re
import signal
import sys
import uuid
from pathlib import Path

import pytest
from tests.harness.processes import Proc, Processes
from tests.harness.server import Server
from tests.integration.observe.conftest import get, scrape, series

TIDEGATE = str(Path(sys.executable).with_name("tidegate"))


def write(directory: Path, url: str, fleet: str, address: str = "127.0.0.1:0", more: str = "") -> Path:
    file = directory / f"{uuid.uuid4().hex[:8]}.toml"
    file.write_text(
        f'[fleet]\nname = "{fleet}"\nenqueue_timeout = "500ms"\n[broker]\nurl = "{url}"\n'
        f'[observability]\nmetrics_address = "{address}"\n{more}'
    )
    return file


def start(processes: Processes, *words: str) -> Proc:
    return processes.spawn([TIDEGATE, "exporter", *words], name=f"exporter-{uuid.uuid4().hex[:6]}")


def told(proc: Proc) -> str:
    """The address that the running exporter printed."""
    proc.wait_for_text("ends it", 30)
    found = re.search(r"metrics at (\S+)/metrics", proc.text())
    assert found is not None, proc.tail()
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_says_where_it_listens_and_ends_politely(
    processes: Processes, shared_server: Server, fleet: str, tmp_path: Path, number: signal.Signals
) -> None:
    proc = start(processes, "--config", str(write(tmp_path, shared_server.url, fleet)))
    url = told(proc)
    assert fleet in proc.text()
    assert series(scrape(url), "store_up") == 1
    assert get(f"{url}/readyz")[0] == 200
    names = {name for name, _ in scrape(url)}
    assert all(name.startswith("tidegate_") for name in names), "nothing about the exporter's own process"
    proc.send(number)
    assert proc.wait(10) == 0
    assert "Traceback" not in proc.text()


@pytest.mark.slow
def test_each_error_is_one_message_with_its_exit_code(
    processes: Processes, shared_server: Server, fleet: str, tmp_path: Path
) -> None:
    first = start(processes, "--config", str(write(tmp_path, shared_server.url, fleet)))
    taken = told(first).removeprefix("http://")
    cases = [
        (1, write(tmp_path, shared_server.url, fleet, taken), "Address already in use; end what listens"),
        (3, write(tmp_path, f"unix://{tmp_path}/nobody.sock", fleet), "cannot be reached"),
        (4, write(tmp_path, shared_server.url, fleet, "127.0.0.1:70000"), "no port is 70000"),
        (4, write(tmp_path, shared_server.url, fleet, more="metrics_adress = 1\n"), "metrics_adress"),
    ]
    for code, file, text in cases:
        proc = start(processes, "--config", str(file))
        assert proc.wait(30) == code, proc.tail()
        assert text in proc.text()
        assert "Traceback" not in proc.text()
    usage = start(processes, "--nonsense")
    assert usage.wait(30) == 2
    assert first.alive
    assert series(scrape(f"http://{taken}"), "store_up") == 1
