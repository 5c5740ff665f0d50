"""Folders with a fleet in them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.harness import guard
from tests.harness.book import Ledger
from tests.harness.processes import Processes
from tests.integration.up.stage import Stage


class MakeStage(Protocol):
    def __call__(self, more: str = "", address: str = "127.0.0.1:0") -> Stage: ...


@pytest.fixture
def make_up(ledger: Ledger, processes: Processes) -> Iterator[MakeStage]:
    """Makes folders with short names: the embedded server's socket lives in them."""
    stages: list[Stage] = []

    def make(more: str = "", address: str = "127.0.0.1:0") -> Stage:
        home = Path(tempfile.mkdtemp(prefix="tg-"))
        guard.register_directory(home)
        stages.append(Stage(home, ledger, processes, more, address))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
        shutil.rmtree(stage.home)


@pytest.fixture
def stage(make_up: MakeStage) -> Stage:
    return make_up()
