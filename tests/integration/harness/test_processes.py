"""Process control by pid: exact, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.harness import procfs
from tests.harness.processes import Processes, kill9
from tests.harness.wait import wait_until

#: a parent with two children (one in a session of its own), all of which ignore SIGTERM
FAMILY = (
    "import os, signal\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "for away in (False, True):\n"
    "    if os.fork() == 0:\n"
    "        if away: os.setsid()\n"
    "        signal.pause()\n"
    "print('ready', flush=True)\n"
    "signal.pause()\n"
)


def family(processes: Processes) -> tuple[list[procfs.ProcessId], procfs.ProcessId]:
    parent = processes.spawn([sys.executable, "-c", FAMILY])
    parent.wait_for_text("ready")
    wait_until(lambda: len(parent.children()) == 2, parent.tail)
    return parent.children(), parent.id


def test_kill9_kills_one_process_and_no_other(processes: Processes) -> None:
    children, parent = family(processes)
    kill9(children[0])
    assert not procfs.is_alive(children[0])
    assert procfs.is_alive(children[1])
    assert procfs.is_alive(parent)


def test_the_end_of_a_test_leaves_no_child_and_no_orphan(tmp_path: Path) -> None:
    mine = Processes(tmp_path)
    children, parent = family(mine)
    mine.all[0].kill9()
    assert all(procfs.is_alive(child) for child in children), "orphans live on"
    mine.close()
    assert not any(procfs.is_alive(process) for process in (*children, parent))
    mine.close()


def test_frozen_processes_are_ended_too(tmp_path: Path) -> None:
    mine = Processes(tmp_path)
    children, _ = family(mine)
    mine.all[0].freeze()
    mine.close()
    assert not any(procfs.is_alive(child) for child in children)


def test_a_pid_with_another_start_time_is_another_process(processes: Processes) -> None:
    (child, _), _ = family(processes)
    stranger = procfs.ProcessId(child.pid, child.start + 1)
    assert not procfs.signal_process(stranger, signal.SIGKILL)
    assert not procfs.is_alive(stranger)
    assert procfs.is_alive(child)


def test_a_failure_shows_the_end_of_the_log(processes: Processes) -> None:
    failing = processes.spawn([sys.executable, "-c", "raise SystemExit('no luck')"])
    with pytest.raises(AssertionError, match="no luck"):
        failing.wait_for_text("ready")
    assert failing.wait() == 1


def test_foreign_settings_do_not_reach_the_processes(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_FLEET_NAME", "somebody-elses")
    script = "import os; print([n for n in os.environ if n.startswith('TIDEGATE_')])"
    process = processes.spawn([sys.executable, "-c", script], env={"TIDEGATE_CONFIG": "mine"})
    assert process.wait() == 0
    assert process.text() == "['TIDEGATE_CONFIG']\n"


def test_nothing_is_left_of_a_test_process_that_is_killed(processes: Processes, tmp_path: Path) -> None:
    """The guard: a pytest killed with -9 in the middle leaves neither servers, nor processes, nor directories."""
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.harness.server import Server\n"
        "from tests.harness.processes import Processes\n"
        "server = Server().start()\n"
        "child = Processes(Path(sys.argv[1])).spawn([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print(server.pid, child.pid, server.directory, flush=True)\n"
        "signal.pause()\n"
    )
    tester = processes.spawn([sys.executable, "-c", script, str(tmp_path)])
    line = wait_until(lambda: tester.text() if tester.text().endswith("\n") else "", tester.tail)
    server, child, directory = line.split()
    left = [procfs.identify(int(server)), procfs.identify(int(child))]
    os.kill(tester.pid, signal.SIGKILL)
    wait_until(
        lambda: not any(process and procfs.is_alive(process) for process in left),
        lambda: f"the end of {left}",
    )
    wait_until(lambda: not Path(directory).exists(), f"{directory} to be removed")
