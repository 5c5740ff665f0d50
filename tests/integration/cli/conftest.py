"""A fleet for the command line, on a server of the test's own."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.processes import environment
from tests.harness.server import Server

TIMEOUT = 0.5  # the fleet's enqueue_timeout, seconds


@dataclass(frozen=True, slots=True)
class Desk:
    """A directory with a tidegate.toml, its server, and a person who types."""

    directory: Path
    server: Server
    prefix: str

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command in a process of its own."""
        return subprocess.run(
            [str(Path(sys.executable).with_name("tidegate")), *words],
            cwd=self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def jobs(self) -> int:
        """Records of jobs in the server."""
        return len(list(self.server.client().scan_iter(match=f"{self.prefix}job:*", count=1000)))

    def keys(self) -> int:
        """Keys of the fleet, of whatever kind."""
        return len(list(self.server.client().scan_iter(match=f"{self.prefix}*", count=1000)))


@pytest.fixture
def desk(tmp_path: Path, own_server: OwnServer) -> Desk:
    server, name = own_server(options={"appendonly": "yes"}), f"c{uuid.uuid4().hex[:8]}"
    (tmp_path / "tidegate.toml").write_text(
        f'[fleet]\nname = "{name}"\nenqueue_timeout = "{round(TIMEOUT * 1000)}ms"\n'
        f'[broker]\nurl = "{server.url}"\n[queues.default]\nmax_depth = 1\n'
    )
    return Desk(tmp_path, server, "{" + name + "}:")
