"""`tidegate top`, as a process beside a fleet."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.harness.fixtures import OwnServer
from tests.harness.processes import Processes
from tests.harness.wait import wait_until

TOP = [sys.executable, "-m", "tidegate", "top"]


def settings(folder: Path, url: str) -> None:
    (folder / "tidegate.toml").write_text(f'[broker]\nurl = "{url}"\n[queues.default]\nmax_depth = 7\n')


def test_pictures_follow_each_other_and_an_outage_is_said(
    tmp_path: Path, own_server: OwnServer, processes: Processes
) -> None:
    server = own_server(options={"appendonly": "yes"})
    settings(tmp_path, server.url)
    top = processes.spawn([*TOP, "-i", "0.1"], cwd=tmp_path, name="top")
    top.wait_for_text("0/7")
    assert "no worker: nothing that waits is started" in top.text()
    server.stop()
    top.wait_for_text("asking again until it answers")
    before = top.text().count("0/7")
    server.start()
    wait_until(lambda: top.text().count("0/7") > before, "pictures after the outage", 20)
    assert "\x1b" not in top.text()
    top.send(signal.SIGINT)
    assert top.wait() == 0
    assert "Traceback" not in top.text()


def test_a_number_of_json_frames(tmp_path: Path, own_server: OwnServer) -> None:
    settings(tmp_path, own_server().url)
    done = subprocess.run(
        [*TOP, "--json", "-n", "2", "-i", "0.1"], cwd=tmp_path, capture_output=True, timeout=30, check=True
    )
    first, second = map(json.loads, done.stdout.decode().splitlines())
    assert first["queues"]["default"]["limit"] == second["queues"]["default"]["limit"] == 7
    assert (first["tenants"], first["beat_silent"]) == ([], None)


def test_a_terminal_gets_a_live_picture_and_ctrl_c_ends_it(tmp_path: Path, own_server: OwnServer) -> None:
    settings(tmp_path, own_server().url)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["TERM"] = "xterm"
        os.execv(TOP[0], [*TOP, "-i", "0.1"])
    seen = b""
    while seen.count(b"0/7") < 3:
        seen += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    with os.fdopen(terminal, "rb", buffering=0) as rest:
        try:
            while more := rest.read(65536):
                seen += more
        except OSError:  # the other end is closed
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert re.search(rb"\x1b\[", seen)
    assert b"Traceback" not in seen
