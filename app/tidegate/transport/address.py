"""Where kombu's connections go: to the fleet's store, whatever URL Celery was given, and always with a time-out.

kombu's default is to wait for ever on a connection whose other end is gone, and one such command in the main loop
of a worker stops it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.store import Store


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection; seconds where they are times."""

    socket_timeout: float | None
    socket_connect_timeout: float | None
    health_check_interval: float
    max_connections: int


class Owner(Protocol):
    """The channel that must hear of a connection that was closed."""

    _registered: bool

    def _on_connection_disconnect(self, connection: Any) -> None: ...


def parameters(store: Store, limits: Limits, owner: Owner | None) -> dict[str, Any]:
    """Arguments of redis-py's connection pool. owner: for the connections that the event loop polls."""
    target = store.target
    found: dict[str, Any] = {
        "db": target.db,
        "username": target.username,
        "password": target.password,
        "socket_timeout": limits.socket_timeout,
        "max_connections": limits.max_connections,
        "health_check_interval": limits.health_check_interval,
        "protocol": 2,
    }
    if target.scheme == "unix":
        found["path"] = target.path
    else:
        found |= {
            "host": target.host,
            "port": target.port,
            "socket_connect_timeout": limits.socket_connect_timeout,
            "socket_keepalive": True,
        }
    kind = store.connection_class(target.scheme)
    found["connection_class"] = kind if owner is None else _polled(kind, owner)
    return found


def _polled(kind: type, owner: Owner) -> type:
    class Connection(kind):
        """kombu's way: the poller must forget a connection that was closed."""

        def disconnect(self, *args: Any, **options: Any) -> None:
            super().disconnect(*args, **options)
            if owner._registered:
                owner._on_connection_disconnect(self)

    return Connection
