"""The data directory of an embedded server: its files, its modes, and how the server there is reached."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from tidegate.embedded.errors import EmbeddedError
from tidegate.embedded.resp import Address, LoopbackAddress, UnixAddress

#: sun_path without its final zero byte (unix(7); 104 bytes on macOS)
MAX_SOCKET_PATH = 103 if sys.platform == "darwin" else 107

_CHOOSE = "set broker.data_dir in tidegate.toml to a directory you own and can write to"


@dataclass(frozen=True, slots=True)
class Place:
    """`root` is absolute and free of symbolic links, so that two names of one directory are one place."""

    root: Path

    @classmethod
    def at(cls, data_dir: Path) -> Place:
        return cls(data_dir.resolve())

    @property
    def socket(self) -> Path:
        return self.root / "valkey.sock"

    @property
    def config(self) -> Path:
        return self.root / "valkey.conf"

    @property
    def log(self) -> Path:
        return self.root / "valkey.log"

    @property
    def pid_file(self) -> Path:
        return self.root / "valkey.pid"

    @property
    def port_file(self) -> Path:
        """Exists only if the server listens on loopback."""
        return self.root / "valkey.port"

    @property
    def password_file(self) -> Path:
        return self.root / "valkey.password"

    @property
    def start_lock(self) -> Path:
        return self.root / "start.lock"

    @property
    def server_lock(self) -> Path:
        return self.root / "server.lock"

    def prepare(self) -> None:
        """Make the directory, for this user alone. Raises EmbeddedError if that cannot be."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.root.stat()
            if found.st_uid != os.geteuid():
                raise EmbeddedError("the data directory belongs to another user", str(self.root), _CHOOSE)
            if found.st_mode & 0o777 != 0o700:
                self.root.chmod(0o700)
        except OSError as error:
            raise EmbeddedError(
                f"the data directory cannot be used: {error.strerror}", str(self.root), _CHOOSE
            ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise EmbeddedError("the data directory is not writable", str(self.root), _CHOOSE)

    def address(self) -> Address:
        """Where the server of this directory listens, or would, by what its last start has left."""
        try:
            port = int(self.port_file.read_text())
        except (FileNotFoundError, ValueError):
            return UnixAddress(self.socket)
        return LoopbackAddress(port, self._known_password())

    def choose_address(self, avoid: frozenset[int] = frozenset()) -> Address:
        """Decide where a new server shall listen, and write it down. Only under the start lock.

        A socket where there can be one; else a port on loopback with a password: the last one if it is free,
        so that clients find the server again. avoid: ports that were taken when the server tried them.
        """
        if can_hold_socket(self.socket):
            self.port_file.unlink(missing_ok=True)
            return UnixAddress(self.socket)
        before = self.address()
        port = before.port if isinstance(before, LoopbackAddress) else 0
        if port in avoid or not _is_free(port):
            port = 0
        port = port or _free_port()
        write_private(self.port_file, f"{port}\n")
        # Made once, and it outlives the server: clients that find it again keep their password.
        password = self._known_password() or secrets.token_urlsafe(32)
        write_private(self.password_file, f"{password}\n")
        return LoopbackAddress(port, password)

    def _known_password(self) -> str:
        try:
            return self.password_file.read_text().strip()
        except FileNotFoundError:
            return ""

    def log_tail(self, lines: int = 15) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - 8192))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])


def can_hold_socket(path: Path) -> bool:
    """Whether a unix socket can be made here: its path is short enough and the file system knows sockets."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        return False
    probe = path.with_name("~")  # never longer than the path itself
    with contextlib.suppress(FileNotFoundError):
        probe.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        try:
            trial.bind(str(probe))
        except OSError:
            return False
    probe.unlink()
    return True


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 in one step: a reader sees the old text or the new, never half of it."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        # as the server does, so that connections of its predecessor in TIME_WAIT do not count as taken
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
