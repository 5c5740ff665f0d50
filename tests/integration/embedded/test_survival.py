"""Many starters, killed starters, killed servers, stale files: one server, all data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.harness import procfs
from tests.harness.aof import wait_written
from tests.harness.processes import Proc, Processes, kill9
from tests.harness.wait import wait_until
from tests.integration.embedded.conftest import NewDirectory
from tests.integration.embedded.test_ensure import connect

from tidegate.embedded import EmbeddedError, State, ensure, status
from tidegate.embedded.lock import holders, is_held
from tidegate.embedded.place import MAX_SOCKET_PATH

STARTER = [sys.executable, "-m", "tests.integration.embedded.starter"]


def start_ten(processes: Processes, data_dir: Path) -> list[dict[str, Any]]:
    procs = [processes.spawn([*STARTER, str(data_dir)]) for _ in range(10)]
    return [_answer(proc) for proc in procs]


def kill_server(pid: int) -> None:
    process = procfs.identify(pid)
    assert process is not None
    kill9(process)


@pytest.mark.parametrize("folder", ["data", "d" * MAX_SOCKET_PATH], ids=["socket", "loopback"])
def test_ten_processes_at_once_share_one_server(
    processes: Processes, new_directory: NewDirectory, folder: str
) -> None:
    data_dir = new_directory(folder)
    answers = start_ten(processes, data_dir)
    assert len({answer["pid"] for answer in answers}) == 1
    assert len({answer["url"] for answer in answers}) == 1
    assert sum(answer["started"] for answer in answers) == 1
    assert len(procfs.working_in(data_dir)) == 1


@pytest.mark.parametrize("folder", ["data", "d" * MAX_SOCKET_PATH], ids=["socket", "loopback"])
def test_ten_processes_after_kill_9_of_the_server_share_a_new_one_with_all_data(
    processes: Processes, new_directory: NewDirectory, folder: str
) -> None:
    data_dir = new_directory(folder)
    for round_ in range(3):
        endpoint = ensure(data_dir)
        with connect(endpoint.url) as client:
            client.rpush("rounds", round_)
            wait_written(client)
        kill_server(endpoint.pid)
        answers = start_ten(processes, data_dir)
        assert len({answer["pid"] for answer in answers}) == 1
        assert sum(answer["started"] for answer in answers) == 1
        assert answers[0]["url"] == endpoint.url
        with connect(answers[0]["url"]) as client:
            assert client.llen("rounds") == round_ + 1
    assert len(procfs.working_in(data_dir)) == 1


def test_it_survives_kill_9_of_its_starters_process_group(processes: Processes, data_dir: Path) -> None:
    starter = processes.spawn([*STARTER, str(data_dir), "stay"])
    pid = _answer(starter)["pid"]
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    endpoint = ensure(data_dir)
    assert (endpoint.pid, endpoint.started) == (pid, False)


def test_ctrl_c_in_the_starters_terminal_does_not_reach_it(data_dir: Path, tmp_path: Path) -> None:
    """A real terminal: the kernel sends SIGINT to the whole foreground process group, and SIGHUP at its end."""
    pid, terminal = os.forkpty()
    if pid == 0:  # pragma: no cover - becomes the starter
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background of a shell ignores it
        os.execv(sys.executable, [*STARTER, str(data_dir), "stay"])
    try:
        with os.fdopen(os.dup(terminal), "rb") as screen:
            server = json.loads(screen.readline())["pid"]
            os.write(terminal, b"\x03")
            _, how = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(how) != 0, "Ctrl-C ended the starter"
    finally:
        os.close(terminal)
    assert status(data_dir).state is State.RUNNING
    assert ensure(data_dir).pid == server


def test_no_zombie_is_left_with_a_starter_that_lives(processes: Processes, data_dir: Path) -> None:
    starter = processes.spawn([*STARTER, str(data_dir), "stay"])
    kill_server(_answer(starter)["pid"])
    assert [entry for entry in procfs.everything() if entry.ppid == starter.pid] == []


def test_a_torn_end_of_the_aof_loads(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    with connect(endpoint.url) as client:
        client.set("kept", "v")
        client.set("torn", "v")
        wait_written(client)
    kill_server(endpoint.pid)
    (aof,) = (data_dir / "appendonlydir").glob("*.incr.aof")
    os.truncate(aof, aof.stat().st_size - 3)
    with connect(ensure(data_dir).url) as client:
        assert client.get("kept") == b"v"
        assert client.get("torn") is None


def test_files_of_a_dead_server_are_cleaned_even_if_its_pid_lives_again(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    kill_server(endpoint.pid)
    assert (data_dir / "valkey.sock").exists(), "a killed server leaves its socket"
    # the pid in the file now belongs to somebody else: to us
    (data_dir / "valkey.pid").write_text(f"{os.getpid()}\n")
    fresh = ensure(data_dir)
    assert fresh.started
    assert int((data_dir / "valkey.pid").read_text()) == fresh.pid


def test_a_file_in_place_of_the_socket_is_replaced(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "valkey.sock").write_text("not a socket")
    assert ensure(data_dir).started


def test_a_server_whose_socket_was_deleted_is_replaced_with_its_data(data_dir: Path) -> None:
    before = ensure(data_dir)
    with connect(before.url) as client:
        client.set("k", "v")
    (data_dir / "valkey.sock").unlink()
    after = ensure(data_dir)
    assert after.pid != before.pid
    with connect(after.url) as client:
        assert client.get("k") == b"v"
    assert len(procfs.working_in(data_dir)) == 1


def test_a_frozen_server_is_reported_and_never_doubled(data_dir: Path) -> None:
    endpoint = ensure(data_dir)
    os.kill(endpoint.pid, signal.SIGSTOP)
    with pytest.raises(EmbeddedError, match=f"pid {endpoint.pid}\\) and does not answer") as caught:
        ensure(data_dir, timeout=1.5)
    assert "SIGCONT" in caught.value.next_step
    assert len(procfs.working_in(data_dir)) == 1
    assert status(data_dir).state is State.SILENT
    os.kill(endpoint.pid, signal.SIGCONT)
    assert ensure(data_dir).pid == endpoint.pid


def test_the_rewriting_child_of_a_dead_server_only_delays_the_next_one(data_dir: Path) -> None:
    # A slow rewrite (1 s for each key): the child outlives its parent and holds the inherited lock until it next
    # tries to tell its parent how far it is.
    endpoint = ensure(data_dir, options={"rdb-key-save-delay": "1000000"})
    with connect(endpoint.url) as client:
        client.mset({f"k{number}": "v" for number in range(100)})
        wait_written(client)
        client.bgrewriteaof()
    (child,) = wait_until(lambda: procfs.children(endpoint.pid), "the rewriting child")
    kill_server(endpoint.pid)
    assert is_held(data_dir / "server.lock")
    assert holders(data_dir / "server.lock") == [child.pid]
    with connect(ensure(data_dir).url) as client:
        assert client.dbsize() == 100
    assert not procfs.is_alive(child)


def test_a_starter_killed_at_any_moment_blocks_nobody(processes: Processes, data_dir: Path) -> None:
    for files in range(6):
        starter = processes.spawn([*STARTER, str(data_dir)])
        wait_until(
            lambda: not starter.alive or _count(data_dir) >= files,  # noqa: B023 - called at once
            "the starter's next file",
            interval=0.0005,
        )
        starter.kill9()
        endpoint = ensure(data_dir)
        assert len(procfs.working_in(data_dir)) == 1
        kill_server(endpoint.pid)


def test_the_errors_of_a_directory_that_cannot_be_written(data_dir: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from tidegate.embedded import EmbeddedError, ensure\n"
        "os.getuid() == 0 and os.setuid(65534)\n"
        "try: ensure(Path(sys.argv[1]))\n"
        "except EmbeddedError as error: print(error)\n"
    )
    data_dir.parent.chmod(0o500)
    said = subprocess.run(
        [sys.executable, "-c", script, str(data_dir)], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    data_dir.parent.chmod(0o700)
    assert str(data_dir) in said
    assert "broker.data_dir" in said


def _count(directory: Path) -> int:
    return len(list(directory.iterdir())) if directory.exists() else 0


def _answer(proc: Proc) -> dict[str, Any]:
    text = wait_until(
        lambda: proc.text() if proc.text().endswith("\n") else "",
        lambda: f"an endpoint\n{proc.tail()}",
        timeout=30,
    )
    answer = json.loads(text.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer
