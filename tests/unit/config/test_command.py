"""`tidegate config` and `tidegate --version` as a person runs them: a real process, its streams and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import __version__

HERE = Path(__file__).parent
BROKEN = HERE / "broken"


def tidegate(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("tidegate")
    return subprocess.run(
        [command, *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_version(tmp_path: Path) -> None:
    done = tidegate("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"tidegate {__version__}\n")


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    done = tidegate("config", "check", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "no settings file, defaults and environment: no faults, no warnings\n"


def test_warnings_are_printed(tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text("broker.allow_eviction = true\n")
    done = tidegate("config", "check", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == (
        "tidegate.toml: no faults, 1 warning\n"
        "  warning: broker.allow_eviction (line 1): a server that evicts keys loses jobs\n"
    )


@pytest.mark.parametrize("how", ["option", "variable"])
def test_faults_are_the_whole_message_on_stderr_and_exit_code_4(how: str) -> None:
    name = "29-everything-at-once.toml"
    given = {"option": ("--config", name), "variable": ()}[how]
    environ = {"TIDEGATE_WORKER_HEARBEAT": "3s"} | ({"TIDEGATE_CONFIG": name} if how == "variable" else {})
    done = tidegate("config", "check", *given, cwd=BROKEN, **environ)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (BROKEN / "29-everything-at-once.txt").read_text()


def test_json_of_faults(tmp_path: Path) -> None:
    done = tidegate("config", "check", "--json", "--config", "01-misspelt-key.toml", cwd=BROKEN)
    assert done.returncode == 4
    assert done.stderr == (BROKEN / "01-misspelt-key.txt").read_text()
    document = json.loads(done.stdout)
    assert (document["valid"], document["settings"]) == (False, None)
    assert document["faults"][0] == {
        "where": "queues.default.max_dept",
        "line": 2,
        "what": "unknown key",
        "hint": "max_depth",
    }


def test_json_of_good_settings_masks_secrets(tmp_path: Path) -> None:
    done = tidegate(
        "config", "check", "--json", cwd=tmp_path, TIDEGATE_BROKER_URL="redis://u:hunter2@localhost"
    )
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["valid"]
    assert document["settings"]["worker"]["lease"] == "15s"
    assert "hunter2" not in done.stdout


def test_schema_is_the_committed_one(tmp_path: Path) -> None:
    done = tidegate("config", "schema", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == (HERE.parents[2] / "docs" / "tidegate.schema.json").read_text()


def test_usage_is_exit_code_2(tmp_path: Path) -> None:
    assert tidegate("config", "chek", cwd=tmp_path).returncode == 2
    assert tidegate("config", "check", "--colour", cwd=tmp_path).returncode == 2


def test_every_command_can_be_reached(tmp_path: Path) -> None:
    from tidegate.cli.main import COMMANDS

    for name in COMMANDS:
        done = tidegate(name, "--help", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
