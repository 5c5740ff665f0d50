"""The lines for producers in the README run as they stand, against a real fleet."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.processes import ROOT, Processes
from tests.harness.server import Server

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(toml|python)\n(.*?)```", README, re.DOTALL)


def block(kind: str, mark: str) -> str:
    """The one block of that kind which contains `mark`."""
    found = [text for language, text in BLOCKS if language == kind and mark in text]
    assert len(found) == 1, f"README.md has {len(found)} {kind} blocks with {mark!r}"
    return found[0]


@pytest.fixture
def project(tmp_path: Path, shared_server: Server, fleet: str, processes: Processes) -> Iterator[Path]:
    """The files that the README shows, and a fleet started as it says."""
    settings = block("toml", "# tidegate.toml").replace("[fleet]", f'[fleet]\nname = "{fleet}"')
    (tmp_path / "tidegate.toml").write_text(f'[broker]\nurl = "{shared_server.url}"\n\n{settings}')
    (tmp_path / "reports.py").write_text(block("python", "# reports.py"))
    # any port: other tests, and a fleet of the developer's own, may have the usual one
    env = {"TIDEGATE_OBSERVABILITY_METRICS_ADDRESS": "127.0.0.1:0"}
    up = processes.spawn_worker([sys.executable, "-m", "tidegate", "up"], cwd=tmp_path, env=env)
    yield tmp_path
    up.term()
    assert up.wait() == 0


def test_the_readme_runs(project: Path, processes: Processes) -> None:
    lines = block("python", "from tidegate import enqueue, QueueFull")
    producer = processes.spawn([sys.executable, "-c", lines], cwd=project)
    assert producer.wait() == 0, producer.tail()
    printed = producer.text().splitlines()[-2:]  # warnings of the store come before
    assert printed[0].startswith("accepted ")
    assert printed[0].endswith(" green")
    assert printed[1] == "report of 2026-03-08"


def test_the_guide_runs(project: Path, processes: Processes) -> None:
    """Every Python block of the guide for producers, one after the other in one process."""
    guide = (ROOT / "docs" / "guide-producer.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert len(blocks) > 5
    (project / "guide.py").write_text("\n".join(blocks))
    producer = processes.spawn([sys.executable, "guide.py"], cwd=project)
    assert producer.wait(60) == 0, producer.tail()
