"""Fleets under test. Starting a worker takes seconds, so the tests of one file share a fleet and a worker per pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.book import Ledger
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Processes
from tests.harness.server import Server
from tests.integration.worker.stage import POOLS, MakeStage, Stage


@pytest.fixture
def make_stage(
    tmp_path: Path, own_server: OwnServer, ledger: Ledger, processes: Processes
) -> Iterator[MakeStage]:
    """Makes fleets on servers of their own: for tests that kill something."""
    stages: list[Stage] = []

    def make(server: Server | None = None, more: str = "", worker: str = "") -> Stage:
        server = server or own_server(options={"appendonly": "yes"})
        stages.append(Stage(tmp_path, server, ledger, processes, more, worker))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


def _stage(directory: Path, server: Server, ledger_server: Server) -> Iterator[Stage]:
    book = Ledger(ledger_server)
    processes = Processes(directory, book.record_process)
    stage = Stage(directory, server, book, processes)
    yield stage
    processes.close()
    stage.close()
    book.close()


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory, shared_server: Server, ledger_server: Server
) -> Iterator[Stage]:
    """One fleet of this file, with one prefork worker."""
    for one in _stage(tmp_path_factory.mktemp("stage"), shared_server, ledger_server):
        one.worker()
        yield one


@pytest.fixture(scope="module", params=POOLS)
def each_pool(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shared_server: Server,
    ledger_server: Server,
) -> Iterator[Stage]:
    """One fleet of this file per pool, with one worker of that pool."""
    for one in _stage(tmp_path_factory.mktemp(request.param), shared_server, ledger_server):
        one.pool = request.param
        one.worker(request.param)
        yield one
