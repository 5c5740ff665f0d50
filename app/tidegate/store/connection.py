"""Connections that know which server process they talk to, and how to reach the server that an URL names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection

from tidegate.domain.errors import StoreRefused

Scheme = Literal["tcp", "tls", "unix"]


class _RunId:
    """Reads the server's run_id at each handshake: a new one means that the server may have lost its last second."""

    run_id: str = ""

    def on_connect_check_health(self, check_health: bool = True) -> None:
        # redis-py 8 calls this one from connect(), and on_connect() only ends up here
        super().on_connect_check_health(check_health)  # type: ignore[misc]
        connection = cast(Any, self)
        connection.send_command("INFO", "server", check_health=False)
        text = connection.read_response()
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        for line in str(text).splitlines():
            if line.startswith("run_id:"):
                self.run_id = line.removeprefix("run_id:").strip()


class TcpConnection(_RunId, Connection):
    """redis://"""


class TlsConnection(_RunId, SSLConnection):
    """rediss://"""


class UnixConnection(_RunId, UnixDomainSocketConnection):
    """unix://"""


CLASSES: dict[Scheme, type[TcpConnection] | type[TlsConnection] | type[UnixConnection]] = {
    "tcp": TcpConnection,
    "tls": TlsConnection,
    "unix": UnixConnection,
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server is, out of a `broker.url`."""

    scheme: Scheme
    host: str = ""
    port: int = 6379
    path: str = ""
    db: int = 0
    username: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> Target:
        """From redis://, rediss:// or unix://; StoreRefused for anything else."""
        parts = urlsplit(url)
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        if parts.scheme == "unix":
            db = int(dict(p.split("=", 1) for p in parts.query.split("&") if "=" in p).get("db", 0))
            return cls("unix", path=unquote(parts.path), db=db, username=user, password=password)
        if parts.scheme in ("redis", "rediss"):
            db = int(parts.path.strip("/") or 0)
            scheme: Scheme = "tls" if parts.scheme == "rediss" else "tcp"
            return cls(scheme, parts.hostname or "127.0.0.1", parts.port or 6379, "", db, user, password)
        raise StoreRefused(
            url,
            f"{parts.scheme}:// is not supported by this release",
            "use embedded, redis://, rediss:// or unix:// as broker.url",
        )

    @property
    def shown(self) -> str:
        """For messages: never with the password."""
        if self.scheme == "unix":
            return f"unix://{self.path}"
        return f"{'rediss' if self.scheme == 'tls' else 'redis'}://{self.host}:{self.port}/{self.db}"

    def connect(self, timeout: float) -> Any:
        """A new connection object, not yet connected. `timeout` bounds connect, each send and each read, in seconds."""
        common: dict[str, Any] = {
            "db": self.db,
            "username": self.username,
            "password": self.password,
            "socket_timeout": timeout,
            "retry": None,
            "retry_on_timeout": False,
            "retry_on_error": [],
            "health_check_interval": 0,
            "protocol": 2,
            "client_name": None,
        }
        if self.scheme == "unix":
            unix: Any = UnixConnection  # abstract in the stubs only
            return unix(path=self.path, **common)
        kind = TlsConnection if self.scheme == "tls" else TcpConnection
        return kind(host=self.host, port=self.port, socket_connect_timeout=timeout, **common)
