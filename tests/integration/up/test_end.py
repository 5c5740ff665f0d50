"""However `tidegate up` ends, nothing of it is left: by pid, grandchildren included."""

from __future__ import annotations

import signal

import pytest
from tests.harness.procfs import identify, is_alive
from tests.integration.up.conftest import MakeStage
from tests.integration.up.stage import CTRL_C, Stage, left, wait_gone

from tidegate import embedded
from tidegate.store import Store


def test_ctrl_c_lets_running_jobs_finish_and_leaves_no_process(stage: Stage) -> None:
    """In a real terminal: it sends SIGINT to the whole foreground group, which only the supervisor is in."""
    terminal = stage.up(terminal=True)
    text = terminal.text()
    for said in (
        stage.settings.fleet.name,
        "valkey.sock",
        "tidegate status",
        "tidegate top",
        "tidegate enqueue",
    ):
        assert said in text
    assert "\x1b[36mup " in text or "\x1b[32mworker-1 |\x1b[0m" in text, "names have colours on a terminal"
    server = stage.server()
    stage.send(1, 1.0, "spawn")
    stage.wait("spawned", 1)
    stage.disconnect()
    everybody = terminal.family()
    # terminal, up; worker, its children and watchdog; beat, exporter; the body's subprocess
    assert len(everybody) >= 2 + 4 + 2 + 1
    terminal.send(CTRL_C)
    assert terminal.wait(30) == 0
    assert left(everybody) == []
    assert terminal.family() == []
    assert server is not None
    assert not is_alive(server), "started by up, used by nobody"
    assert stage.book.count("end") == 1, "the running job was let finish"
    assert "killed" not in terminal.text()
    assert "Hitting Ctrl+C again" not in terminal.text(), "no worker has heard the SIGINT"


def test_a_second_ctrl_c_kills_the_job_and_whatever_it_has_started(stage: Stage) -> None:
    terminal = stage.up("--no-exporter", "--beats", "0", terminal=True)
    stage.send(1, 600.0, "spawn")
    stage.wait("spawned", 1)
    everybody = terminal.family()
    terminal.send(CTRL_C)
    terminal.wait_for_text("jobs given back")
    assert terminal.alive
    terminal.send(CTRL_C)
    assert terminal.wait(10) == 1
    assert left(everybody) == []
    (spawned,) = [entry.info["pid"] for entry in stage.book.entries() if entry.kind == "spawned"]
    body = identify(spawned)
    assert body is None or not is_alive(body)


def test_a_server_that_ran_before_or_that_others_use_goes_on(make_up: MakeStage) -> None:
    found = make_up()
    before = embedded.ensure(found.settings.data_dir)
    used = make_up()
    first = found.up("--workers", "0", "--no-exporter", ready=0)
    second = used.up("--workers", "0", "--no-exporter", ready=0)
    for up in (first, second):
        up.wait_for_text("beat runs")
    now = embedded.status(used.settings.data_dir).endpoint
    assert now is not None
    with_store = Store.open(used.settings, "tool", url=now.url)
    for up in (first, second):
        up.send(signal.SIGHUP)  # a terminal that is closed
        assert up.wait() == 0
    after = embedded.status(found.settings.data_dir).endpoint
    assert after is not None
    assert after.pid == before.pid
    assert with_store.snapshot().epoch
    with_store.close()
    assert "ran before" in first.text()
    assert "others use it" in second.text()


@pytest.mark.slow
def test_killed_it_takes_its_parts_along_politely_and_the_next_one_goes_on(stage: Stage) -> None:
    up = stage.up()
    stage.send(2, 1.0)
    stage.wait("begin", 2)
    server = stage.server()
    parts = [process for process in up.family() if process.pid != up.pid]
    up.kill9()
    wait_gone(parts, up)
    assert stage.book.count("end") == 2, "running jobs were let finish"
    again = stage.up("--no-exporter")
    assert stage.server() == server
    stage.send(2, 0.1)
    stage.wait("end", 4)
    stage.disconnect()
    again.term()
    assert again.wait() == 0
    assert stage.server() is None, "it was up's, and nobody else's: the second one knows"
    assert stage.verdict().reruns() == {}
