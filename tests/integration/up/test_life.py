"""What dies is started again; what cannot run ends everything with its message; one supervisor per folder."""

from __future__ import annotations

import re
import socket
import urllib.request
from dataclasses import replace

import pytest
from tests.harness.processes import ROOT, freeze, kill9
from tests.harness.procfs import descendants, is_alive
from tests.harness.wait import quietly, wait_until
from tests.integration.up.conftest import MakeStage
from tests.integration.up.stage import Stage, left, process

from tidegate.supervisor import AlreadyUp, Supervisor
from tidegate.supervisor import supervisor as module


def test_a_killed_worker_is_started_again_and_a_second_up_is_refused(make_up: MakeStage) -> None:
    stage = make_up('[worker]\npool = "threads"\n')  # where no watchdog ends what a body has started
    up = stage.up("--no-exporter")
    worker = stage.part(up, "worker-1")
    second = stage.up(ready=0)
    assert second.wait() == 1
    assert f"runs already in this folder (pid {up.pid}" in second.text()
    assert is_alive(worker)
    assert "Traceback" not in second.text()
    stage.send(1, 600.0, "spawn")
    stage.wait("spawned", 1)
    below = [process for process in up.family() if process.pid != up.pid]
    kill9(worker, stage.book.record_process)
    up.wait_for_text(f"worker-1 (pid {worker.pid}) has ended: killed by SIGKILL; it is started again in 1 s")
    up.wait_for_text(" ready.", count=2)
    again = stage.part(up, "worker-1")
    assert again.pid != worker.pid
    beat = stage.part(up, "beat-1")
    assert left(below) == [beat], "nothing of the dead worker lives, the job's subprocess included"


def test_settings_that_a_part_cannot_use_end_everything_with_its_message(make_up: MakeStage) -> None:
    stage = make_up()
    text = stage.config.read_text()
    stage.config.write_text(re.sub("imports = .*", 'celery_app = "no.such:app"', text))
    up = stage.up(ready=0)
    assert up.wait() == 4
    end = up.text()[up.text().index("worker-1 cannot run (exit code 4)") :]
    assert re.search("fleet.celery_app.*no.such:app cannot be loaded", end), up.text()
    assert up.family() == []
    assert "is started again" not in up.text()
    assert stage.server() is None
    stage.config.write_text("[flet]\n")
    refused = stage.up(ready=0)
    assert refused.wait() == 4
    assert "flet" in refused.text()


def test_a_store_that_cannot_be_reached_is_tried_again(make_up: MakeStage) -> None:
    stage = make_up('[broker]\nurl = "redis://127.0.0.1:1"\n')
    up = stage.up("--beats", "0", "--no-exporter", ready=0)
    up.wait_for_text("exit status 3 (store unreachable); it is started again in 2 s")
    assert "redis://127.0.0.1:1" in up.text()
    up.term()
    assert up.wait() == 0
    assert up.family() == []


def test_an_address_that_is_taken_is_tried_again(make_up: MakeStage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        stage = make_up(address=f"127.0.0.1:{port}")
        up = stage.up("--workers", "0", "--beats", "0", ready=0)
        up.wait_for_text("Address already in use")
        up.wait_for_text("has ended: exit status 1; it is started again in 1 s")
        assert f"metrics at http://127.0.0.1:{port}/metrics" in up.text()

    def served() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)

    wait_until(quietly(served, OSError), up.tail, 30)
    up.term()
    assert up.wait() == 0


@pytest.mark.slow
def test_a_part_that_floods_holds_nobody_up(stage: Stage) -> None:
    (stage.home / "noisy.py").write_text(
        "import sys, threading\n"
        "def flood():\n"
        "    out = sys.__stdout__.buffer\n"
        "    out.write(b'\\xff\\xfe\\x1b[2J no end ' + b'x' * 200_000)\n"
        "    for number in range(40_000):\n"
        "        out.write(b'%d %s\\n' % (number, b'y' * 60))\n"
        "    out.write(b'the flood is over\\n')\n"
        "    out.flush()\n"
        "threading.Thread(target=flood, daemon=True).start()\n"
    )
    text = stage.config.read_text()
    stage.config.write_text(text.replace('imports = ["', 'imports = ["noisy", "'))
    up = stage.up("--workers", "2", "--no-exporter", ready=0)
    up.wait_for_text("the flood is over", count=2)
    stage.send(2, 0.0)
    stage.wait("end", 2)
    raw = up.log.read_bytes()
    assert b"\x1b" not in raw
    assert b"\\xff\\xfe\\x1b[2J no end xxx" in raw
    lines = raw.decode().splitlines()
    assert max(map(len, lines)) < 9000
    assert all(re.match(r"(up|worker-[12]|beat-1) +\| ", line) for line in lines[lines.index("") + 1 :])
    up.term()
    assert up.wait() == 0


@pytest.fixture
def here(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """For a supervisor in this process."""
    monkeypatch.chdir(stage.home)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return stage


def test_a_stop_that_takes_too_long_ends_all_the_same(here: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen worker hears no signal: it is killed after the drain and a margin."""
    monkeypatch.setattr(module, "MARGIN", 0.5)
    settings = replace(here.settings, worker=replace(here.settings.worker, drain_timeout=0.0))
    said: list[tuple[str, str]] = []
    with Supervisor(settings, exporter=False, say=lambda *words: said.append(words)) as up:
        wait_until(lambda: any(" ready." in line for _, line in said), lambda: repr(said), 20)
        parts = [process(one.pid) for one in up.children]
        parts += descendants([one.pid for one in parts])
        freeze(parts[0])
    assert left(parts) == []
    assert up.exit_code == 1
    assert ("up", "killing 1 processes that have not ended") in said


def test_the_supervisor_as_a_library(here: Stage) -> None:
    """As `tidegate demo` uses it: in a thread, with the pids at hand."""
    stage = here
    said: list[tuple[str, str]] = []
    with Supervisor(
        stage.settings, workers=2, beats=2, exporter=False, say=lambda *words: said.append(words)
    ) as up:
        names = [part.name for part in up.children]
        assert names == ["worker-1", "worker-2", "beat-1", "beat-2"]
        assert all(part.pid and part.restarts == 0 for part in up.children)
        with pytest.raises(AlreadyUp):
            Supervisor(stage.settings).__enter__()
        first = up.children[0].pid
        everybody = [one.pid for one in up.children]
        kill9(process(first))
        wait_until(lambda: up.children[0].restarts == 1 and up.children[0].pid != first, "its next life")
        assert [one.pid for one in up.children[1:]] == everybody[1:]
        wait_until(lambda: sum("ready." in line for _, line in said) >= 2, lambda: repr(said), 20)
        parts = [process(one.pid) for one in up.children]
    assert left(parts) == []
    assert up.exit_code == 0
    assert up.failure is None
    assert ("up", "the store is stopped; its data stay") in said
