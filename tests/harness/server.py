"""Real servers for tests: the bundled Valkey that users start, or Debian's redis-server."""

from __future__ import annotations

import enum
import shutil
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tidegate.embedded.binary import server_binary

from . import guard
from .address import Listen, free_port
from .aof import wait_written
from .processes import Proc
from .wait import wait_until


class Kind(enum.Enum):
    VALKEY = "valkey"
    REDIS = "redis"


#: what users get, minus the rewrites that would move the AOF under a test's feet
_DEFAULTS = {
    "appendonly": "no",
    "appendfsync": "everysec",
    "auto-aof-rewrite-percentage": "0",
    "aof-load-truncated": "yes",
    "maxmemory-policy": "noeviction",
    "save": "",
}


@dataclass(frozen=True, slots=True)
class AofMark:
    """A place in the append-only file: everything answered before the mark lies before it."""

    file: str
    size: int


class Server:
    """One server in its own temp directory. Options are the server's own (`{"appendonly": "yes"}`).

    A frozen or killed server keeps its address: `start()` brings it back on the same socket or port.
    """

    def __init__(
        self,
        kind: Kind = Kind.VALKEY,
        *,
        listen: Listen = "unix",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.listen = listen
        self.options = {**_DEFAULTS, **(options or {})}
        # not pytest's tmp_path: a unix socket's path is limited to 107 bytes
        self.directory = Path(tempfile.mkdtemp(prefix="tg-"))
        guard.register_directory(self.directory)
        self.socket_path = self.directory / "s.sock"
        self.port = 0
        self._proc: Proc | None = None
        self._clients: list[redis.Redis] = []
        self._frozen = False

    # -- life --

    def start(self, timeout: float = 20.0) -> Server:
        """Start and wait until it answers (the AOF is loaded)."""
        assert not self.running, f"pid {self.pid} is already running"
        for _ in range(5):
            if self.listen == "tcp" and self.port == 0:
                self.port = free_port()
            self._proc = Proc(
                [str(self._binary()), *self._arguments()], log=self.directory / "log", cwd=self.directory
            )
            wait_until(lambda: self._answers() or not self.running, lambda: self.log(), timeout)
            if self._answers():
                return self
            if "Address already in use" not in self.log():
                break
            self.port = 0  # another process took the free port between our look and the server's bind
        raise AssertionError(f"the server ended at start\n{self.log()}")

    def stop(self) -> None:
        """SHUTDOWN by SIGTERM: what a clean restart does. The data stay."""
        if self.running:
            self.resume()
            self.proc.term()
            self.proc.wait()
        self._drop_clients()

    def kill9(self) -> None:
        """Dies at once; what was not yet written to the AOF is lost, nothing else."""
        self.proc.kill9()
        self._frozen = False

    def restart(self) -> Server:
        self.stop()
        return self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self.proc.freeze()
        self._frozen = True

    def resume(self) -> None:
        if self._frozen:
            self.proc.send(signal.SIGCONT)
            self._frozen = False

    def close(self) -> None:
        """End and remove everything."""
        self._drop_clients()
        if self._proc is not None:
            self._proc.kill_family()
        shutil.rmtree(self.directory, ignore_errors=True)

    # -- facts --

    @property
    def proc(self) -> Proc:
        assert self._proc is not None, "not started"
        return self._proc

    @property
    def pid(self) -> int:
        return self.proc.pid

    @property
    def running(self) -> bool:
        return self._proc is not None and self._proc.alive

    @property
    def url(self) -> str:
        if self.listen == "tcp":
            return f"redis://127.0.0.1:{self.port}/0"
        return f"unix://{self.socket_path}"

    def client(self, **options: Any) -> redis.Redis:
        """A client without retries: redis-py's own would replay commands behind a test's back."""
        client = redis.Redis.from_url(
            self.url, **{"retry": Retry(NoBackoff(), 0), "socket_timeout": 10, **options}
        )
        self._clients.append(client)
        return client

    def log(self) -> str:
        path = self.directory / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else "(no log)"

    # -- the last second --

    def aof_mark(self) -> AofMark:
        """Remember the end of the AOF. Every write answered before this call is before the mark."""
        wait_written(self.client())
        file = self._aof_incr()
        return AofMark(file.name, file.stat().st_size)

    def kill9_losing_since(self, mark: AofMark, *, torn_bytes: int = 0) -> int:
        """kill -9, and the disk forgets what was written after the mark, as a power cut under everysec would.

        torn_bytes: leave that many bytes of the lost part, so that the file ends inside a command. Returns
        the number of bytes lost. Call `start()` to bring the server back.
        """
        self.kill9()
        file = self._aof_incr()
        assert file.name == mark.file, f"the AOF was rewritten: {mark.file} is now {file.name}"
        size = file.stat().st_size
        keep = min(size, mark.size + torn_bytes)
        with file.open("r+b") as handle:
            handle.truncate(keep)
        return size - keep

    def _aof_incr(self) -> Path:
        """The file that grows: the last `type i` line of the manifest."""
        directory = self.directory / "appendonlydir"
        lines = (directory / "appendonly.aof.manifest").read_text().splitlines()
        names = [words[1] for words in (line.split() for line in lines) if words[-1] == "i"]
        return directory / names[-1]

    # -- inside --

    def _binary(self) -> Path:
        if self.kind is Kind.VALKEY:
            return server_binary()
        found = shutil.which("redis-server")
        assert found, "redis-server is not installed (the tests marked `redis` need Debian's package)"
        return Path(found)

    def _arguments(self) -> list[str]:
        if self.listen == "tcp":
            address = {"port": str(self.port), "bind": "127.0.0.1"}
        else:
            address = {"port": "0", "unixsocket": str(self.socket_path), "unixsocketperm": "700"}
        options = {**address, "dir": str(self.directory), "daemonize": "no", **self.options}
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _answers(self) -> bool:
        probe = redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0), socket_timeout=2)
        try:
            return bool(probe.ping()) and probe.info("server")["process_id"] == self.pid
        except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
            return False
        finally:
            probe.close()

    def _drop_clients(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()
