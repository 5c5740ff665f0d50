"""Fleets on servers with little memory (stage.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.book import Ledger
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Processes
from tests.integration.full_memory.stage import MAXMEMORY, Stage


@pytest.fixture
def stage(tmp_path: Path, own_server: OwnServer, ledger: Ledger, processes: Processes) -> Iterator[Stage]:
    found = Stage(tmp_path, own_server(options=MAXMEMORY), ledger, processes)
    yield found
    found.close()
