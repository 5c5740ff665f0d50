"""`tidegate doctor`, against real servers and processes: it looks, and starts and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.harness.processes import Processes
from tests.harness.server import Server
from tests.harness.wait import wait_until

TIDEGATE = [sys.executable, "-m", "tidegate"]


def tidegate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TIDEGATE, *words], cwd=folder, capture_output=True, text=True, timeout=30, env=_env(), check=False
    )


def doctor(folder: Path) -> tuple[int, dict[str, str], str]:
    """Exit code, level of each thing (the worst, if it is named twice), and what was printed to stderr."""
    done = tidegate(folder, "doctor", "--json")
    findings: list[dict[str, Any]] = json.loads(done.stdout).get("findings", [])
    findings.sort(key=lambda one: "owf".index(one["level"][0]))
    return done.returncode, {one["name"]: one["level"] for one in findings}, done.stderr


def _env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}


def test_nothing_is_started_only_to_look(tmp_path: Path) -> None:
    code, found, _ = doctor(tmp_path)
    assert (code, found["server"]) == (3, "failure")
    assert list(tmp_path.iterdir()) == []


def test_faults_of_the_settings_are_4(tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text("[fleet]\nnam = 1\n")
    code, _, said = doctor(tmp_path)
    assert (code, "did you mean" in said) == (4, True)


def test_a_fleet_that_lacks_everything_and_then_nothing(
    tmp_path: Path, shared_server: Server, fleet: str, processes: Processes
) -> None:
    (tmp_path / "tidegate.toml").write_text(
        f'[fleet]\nname = "{fleet}"\n[broker]\nurl = "{shared_server.url}"\n'
    )
    client = shared_server.client()
    before = set(client.keys(f"{{{fleet}}}*"))
    code, found, _ = doctor(tmp_path)
    assert (code, found["fleet"], found["persistence"]) == (0, "warning", "warning")
    assert set(client.keys(f"{{{fleet}}}*")) == before, "no fleet is made only to look"

    assert tidegate(tmp_path, "status").returncode == 0
    code, found, _ = doctor(tmp_path)
    assert (code, found["workers"], found["beat"], found["schema"]) == (1, "failure", "failure", "ok")

    for part in ("worker", "beat"):
        processes.spawn([*TIDEGATE, part], cwd=tmp_path, name=part)
    wait_until(
        lambda: doctor(tmp_path)[0] == 0,
        lambda: f"health: {doctor(tmp_path)}\n{processes.logs()}",
        30,
        interval=0.2,
    )
    code, found, _ = doctor(tmp_path)
    assert (found["workers"], found["beat"]) == ("ok", "ok")


def test_a_store_that_is_down_is_3(tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text(f'[broker]\nurl = "unix://{tmp_path}/no.sock"\n')
    done = subprocess.run(
        [*TIDEGATE, "doctor"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        env=_env(),
        check=False,
    )
    assert (done.returncode, "cannot be reached" in done.stderr) == (3, True)
