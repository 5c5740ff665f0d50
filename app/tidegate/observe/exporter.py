"""The exporter: a fleet's numbers on an address, from start to stop."""

from __future__ import annotations

import threading
from types import TracebackType

from prometheus_client import CollectorRegistry

from tidegate.config import Settings
from tidegate.config.fault import ConfigError, Fault
from tidegate.observe.collector import FleetCollector
from tidegate.observe.errors import CannotListen
from tidegate.observe.web import Page, Server, application
from tidegate.store import Store

_KEY = "observability.metrics_address"


class Exporter:
    """Serves `/metrics`, `/healthz` and `/readyz` on `observability.metrics_address` between `start` and `stop`.

    release: the version that `tidegate_build_info` names.
    """

    def __init__(self, store: Store, settings: Settings, release: str) -> None:
        self._settings = settings
        self._collector = FleetCollector(store, settings, release)
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen and serve, in a thread. Raises CannotListen, and ConfigError for a port that cannot be."""
        host, port = _address(self._settings)
        # a registry of its own: the default one would add this process's memory and garbage collection
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._collector)
        try:
            server = Server(host, port)
        except OSError as error:
            raise CannotListen(
                self._settings.observability.metrics_address, error.strerror or str(error)
            ) from error
        server.set_app(application(registry, self._ready))
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, args=(0.1,), name="tidegate-exporter", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """No request is taken any more, and the address is free. Harmless if it does not run."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            server.shutdown()
            thread.join()
            server.server_close()

    @property
    def url(self) -> str:
        """Where it listens, without a path: `http://127.0.0.1:9464`. The port is the real one if the settings say 0."""
        assert self._server is not None, "not started"
        host, port = self._server.server_name, self._server.server_port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def __enter__(self) -> Exporter:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _ready(self) -> Page:
        if self._collector.look() is None:
            return "503 Service Unavailable", "the store does not answer; the exporter's log says why\n"
        return "200 OK", "the store answers\n"


def _address(settings: Settings) -> tuple[str, int]:
    host, _, port = settings.observability.metrics_address.rpartition(":")
    if int(port) > 65_535:
        raise ConfigError(str(settings.source or ""), (Fault(_KEY, f"no port is {port}; 65535 is the last"),))
    return host.removeprefix("[").removesuffix("]"), int(port)
