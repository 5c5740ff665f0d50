"""`tidegate demo`, as a newcomer runs it: about a minute, one verdict, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TIDEGATE = Path(sys.executable).with_name("tidegate")
ZEROES = ("lost", "overlapping_attempts", "limit_violations", "fires_duplicated", "fires_missed")
SEEN = (
    "submitted",
    "accepted",
    "duplicates",
    "rejected",
    "succeeded",
    "dead",
    "replayed",
    "fires",
    "seconds",
)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_demo_ends_by_itself_and_everything_held(tmp_path: Path) -> None:
    done = subprocess.run(
        [TIDEGATE, "demo", "--json"],
        cwd=tmp_path,
        # somebody's own fleet stands in the environment: the demo must leave it alone
        env={**os.environ, "TMPDIR": str(tmp_path), "TIDEGATE_BROKER_URL": "redis://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert {name: verdict[name] for name in ZEROES} == dict.fromkeys(ZEROES, 0)
    assert [name for name in SEEN if not verdict[name] > 0] == []
    assert verdict["peak_concurrency"]["crawler"] == verdict["limit"]["crawler"]
    assert verdict["accepted"] == verdict["succeeded"] + verdict["dead"]
    assert list(tmp_path.iterdir()) == [], "the run cleans up"
    assert _still_there(tmp_path) == []


def _still_there(folder: Path) -> list[str]:
    """Command lines of processes that know the folder, which was made for this run."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(process.name)
    return found
