"""A worker on the bundled server brings it back by itself."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from celery import Celery
from tests.harness.book import Ledger
from tests.harness.processes import Processes, celery_worker
from tests.harness.procfs import identify, signal_process
from tests.harness.wait import wait_until

from tidegate import embedded
from tidegate.config import load
from tidegate.worker.install import install

pytestmark = pytest.mark.slow


def test_a_bundled_server_that_died_is_started_again(
    tmp_path: Path, processes: Processes, ledger: Ledger
) -> None:
    config = tmp_path / "tidegate.toml"
    config.write_text('[fleet]\nname = "bundled"\n[broker]\ndata_dir = "data"\n[queues.default]\n')
    settings = load(config, {})
    app = install(Celery("producer", set_as_current=False), settings)
    try:
        processes.spawn_worker(
            celery_worker("tests.integration.lease.fleet", "-P", "prefork", "-c", "1", "-l", "INFO"),
            env={"TIDEGATE_CONFIG": str(config), **ledger.env()},
        )
        app.send_task("work", ("first", 4.0))
        wait_until(lambda: ledger.count("begin") == 1, processes.logs, 20)
        found = embedded.status(settings.data_dir).endpoint
        assert found is not None
        server = identify(found.pid)
        assert server is not None
        signal_process(server, signal.SIGKILL)
        wait_until(lambda: ledger.count("end") == 1, processes.logs, 20)
        app.send_task("work", ("second", 0.1))
        wait_until(lambda: ledger.count("end") == 2, processes.logs, 20)
        assert ledger.count("begin") == 2
    finally:
        processes.close()
        app.close()
        embedded.stop(settings.data_dir)
