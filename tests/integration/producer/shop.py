"""A fleet on a real server, and a producer in this process."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery
from tests.harness.server import Server

from tidegate.config import Settings, load
from tidegate.store import QueueCounts, Store
from tidegate.transport.envelope import whole
from tidegate.worker import identity
from tidegate.worker.install import fleet_of, install

TASKS = "tests.integration.producer.work"


@dataclass(frozen=True, slots=True)
class Shop:
    """`config` is its settings file, for processes that are to produce as well."""

    config: Path
    settings: Settings
    app: Celery
    store: Store

    @classmethod
    def open(cls, directory: Path, server: Server, name: str, more: str = "", fleet: str = "") -> Shop:
        """A fleet called `name`. more: further sections of the settings; fleet: further keys of [fleet]."""
        config = directory / "tidegate.toml"
        # a busy machine is not what these tests are about; those about time-outs set their own
        fleet = fleet or 'enqueue_timeout = "10s"'
        config.write_text(
            f'[fleet]\nname = "{name}"\nimports = ["{TASKS}"]\n{fleet}\n[broker]\nurl = "{server.url}"\n'
            '[tenants.default]\nmax_concurrency = "unlimited"\nrate = "unlimited"\nmax_depth = "unlimited"\n'
            + more
        )
        settings = load(config, {})
        app = Celery("shop", set_as_current=False)
        install(app, settings)
        return cls(config, settings, app, Store.open(settings, "tool"))

    def close(self) -> None:
        gc.collect()  # results of Celery unsubscribe when they are collected: while there is a server
        identity.detach(self.app)
        fleet_of(self.app).close()
        if "client" in vars(self.app.backend):  # Celery leaves its connections to the garbage collector
            self.app.backend.result_consumer.stop()
            self.app.backend.client.connection_pool.disconnect()
        self.store.close()
        self.app.close()

    @property
    def env(self) -> dict[str, str]:
        """For processes of the same fleet."""
        return {"TIDEGATE_CONFIG": str(self.config)}

    def counts(self, queue: str = "default") -> QueueCounts:
        return self.store.snapshot().queues[queue]

    def envelope(self, operation_id: str, step: str = "") -> dict[str, Any]:
        """The stored message of a job, as it is delivered."""
        view = self.store.job(operation_id, step)
        assert view is not None
        return whole(json.loads(view.envelope))
