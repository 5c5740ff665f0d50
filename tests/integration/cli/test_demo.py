"""What the demo's command makes of its verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidegate.cli.demo import demo
from tidegate.demo.play import Play
from tidegate.demo.verdict import Verdict

GOOD = Verdict(
    submitted=4, accepted=2, duplicates=1, rejected=1, succeeded=1, dead=1, replayed=1, lost=0,
    overlapping_attempts=0, limit_violations=0, fires=3, fires_duplicated=0, fires_missed=0,
    peak_concurrency={"acme": 2}, limit={"acme": 2}, wait_p95={"acme": 0.2}, wait_p95_idle={"acme": 0.1},
    seconds=9.0,
)  # fmt: skip


def run(monkeypatch: pytest.MonkeyPatch, verdict: Verdict, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(Play, "run", lambda self: verdict)
    done = CliRunner().invoke(demo, [*words], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_a_run_in_which_everything_held(monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = run(monkeypatch, GOOD)
    assert (code, said.splitlines()[-1]) == (0, "everything held in 9 s")


@pytest.mark.parametrize(
    "wrong", ["lost", "overlapping_attempts", "limit_violations", "fires_duplicated", "fires_missed"]
)
def test_each_kind_of_wrong_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, wrong: str, tmp_path: Path
) -> None:
    code, said = run(monkeypatch, replace(GOOD, **{wrong: 1}), "--json", "--keep", str(tmp_path / "run"))
    assert code == 1
    assert json.loads(said.splitlines()[-1])[wrong] == 1


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text("mine")
    done = CliRunner().invoke(demo, ["--keep", str(tmp_path)])
    assert done.exit_code == 2
    assert "not empty" in done.stderr
    assert (tmp_path / "tidegate.toml").read_text() == "mine"
