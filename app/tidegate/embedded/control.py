"""Starting, finding and stopping the one server of a data directory."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.embedded.errors import EmbeddedError
from tidegate.embedded.launch import launch
from tidegate.embedded.leftover import Unreachable, kill_servers, server_pid
from tidegate.embedded.lock import is_held, start_lock, try_lock
from tidegate.embedded.place import Place
from tidegate.embedded.resp import ErrorReply, LoopbackAddress, ask, facts

_POLL = 0.01  # seconds between looks at a server that is starting or stopping
_REPLY = 1.0  # seconds a living server may take for one reply


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that answers. `url` may hold a password and is left out of `repr`. `started`: by this call."""

    url: str = field(repr=False)
    pid: int
    started: bool


class State(enum.Enum):
    STOPPED = "stopped"
    LOADING = "loading"  # reading its data; answers nothing else yet
    RUNNING = "running"
    SILENT = "silent"  # alive, and does not answer: frozen, or starting this instant


@dataclass(frozen=True, slots=True)
class Status:
    """`endpoint` is None unless the state is RUNNING; `log` is the server's log file."""

    state: State
    endpoint: Endpoint | None
    log: Path


@dataclass(frozen=True, slots=True)
class _Answer:
    pid: int
    loading: bool
    clients: int  # connected, the one that asks included


def ensure(data_dir: Path, *, timeout: float = 10.0, options: Mapping[str, str] | None = None) -> Endpoint:
    """The endpoint of the server of `data_dir`; starts one if none is running.

    Any number of processes may call this at once and get the same server. It outlives all of them and keeps
    its data in the directory (append-only file, written to disk every second).
    timeout: seconds for everything, reading the data included. options: settings of the server, used only if
    this call starts it. Raises EmbeddedError.
    """
    place = Place.at(data_dir)
    place.prepare()
    deadline = time.monotonic() + timeout
    with _file_errors(place):
        if (answer := _ask(place)) and not answer.loading:
            return _endpoint(place, answer, started=False)
        with start_lock(place.start_lock, timeout):
            return _join(place, deadline) or _start(place, options or {}, deadline)


def status(data_dir: Path) -> Status:
    """What is there now; changes nothing, and makes no directory."""
    place = Place.at(data_dir)
    answer = _ask(place)
    if answer is None:
        state = State.SILENT if is_held(place.server_lock) else State.STOPPED
    else:
        state = State.LOADING if answer.loading else State.RUNNING
    endpoint = _endpoint(place, answer, started=False) if answer and state is State.RUNNING else None
    return Status(state, endpoint, place.log)


def stop(data_dir: Path, *, timeout: float = 10.0) -> bool:
    """End the server of `data_dir`, data kept; True if one was running. timeout: seconds.

    A server that does not answer is killed, which may cost what it acknowledged in its last second.
    Raises EmbeddedError if it cannot be ended.
    """
    place = Place.at(data_dir)
    if not place.root.is_dir():
        return False
    with _file_errors(place), start_lock(place.start_lock, timeout):
        return _end(place, timeout)


def stop_unused(data_dir: Path, *, timeout: float = 10.0) -> bool:
    """As `stop`, if within a second nobody else is connected; False if it goes on, or none was running.

    A server that does not answer is left alone. Somebody who connects in the last instant finds the server gone, as
    after a crash, and starts it again; the data are written before it ends.
    """
    place = Place.at(data_dir)
    if not place.root.is_dir():
        return False
    # a client that is gone counts until the server has noticed
    alone = lambda: (answer := _ask(place)) is not None and answer.clients <= 1  # noqa: E731
    with _file_errors(place), start_lock(place.start_lock, timeout):
        return _within(_REPLY, alone) and _end(place, timeout)


def _end(place: Place, timeout: float) -> bool:
    """Under the start lock."""
    found = _ask(place) is not None or is_held(place.server_lock)
    if found:
        _shut_down(place, timeout)
    place.socket.unlink(missing_ok=True)
    place.pid_file.unlink(missing_ok=True)
    return found


def _join(place: Place, deadline: float) -> Endpoint | None:
    """The server that is there already, as soon as it answers; None if there is none. Under the start lock."""
    unreachable = Unreachable(place)
    while True:
        answer = _ask(place)
        if answer and not answer.loading:
            return _endpoint(place, answer, started=False)
        if answer is None and not is_held(place.server_lock):
            return None
        if time.monotonic() >= deadline:
            raise _no_answer(place, answer)
        if answer is None:
            unreachable.end()
        time.sleep(_POLL)


def _start(place: Place, options: Mapping[str, str], deadline: float) -> Endpoint:
    """Start a server and wait until it answers. Under the start lock, with no server alive."""
    taken: frozenset[int] = frozenset()
    while True:
        address = place.choose_address(taken)
        lock = _take(place, deadline)
        try:
            launch(place, address, options, lock, max(1.0, deadline - time.monotonic()))
        finally:
            os.close(lock)  # the server has its own copy; ours would hide its death
        if (answer := _wait_for_answer(place, deadline)) is not None:
            return _endpoint(place, answer, started=True)
        tail = place.log_tail()
        if isinstance(address, LoopbackAddress) and "Address already in use" in tail:
            taken |= {address.port}  # another process was faster with this port
            continue
        raise EmbeddedError(
            "the server died while it was starting",
            str(place.log),
            "read its log; if the data are damaged, restore appendonlydir from a copy or move it away",
            tail,
        )


def _take(place: Place, deadline: float) -> int:
    # Nobody but us starts servers now; a `status` elsewhere may hold the lock for an instant.
    while (lock := try_lock(place.server_lock)) is None:
        if time.monotonic() >= deadline:
            raise _no_answer(place, None)
        time.sleep(_POLL)
    return lock


def _wait_for_answer(place: Place, deadline: float) -> _Answer | None:
    """The answer of the server just started; None if it died."""
    while True:
        answer = _ask(place)
        if answer and not answer.loading:
            return answer
        if answer is None and not is_held(place.server_lock):
            return None
        if time.monotonic() >= deadline:
            raise _no_answer(place, answer)
        time.sleep(_POLL)


def _shut_down(place: Place, timeout: float) -> None:
    with contextlib.suppress(OSError, ErrorReply):  # the reply to SHUTDOWN is a closed connection
        ask(place.address(), "SHUTDOWN", timeout=_REPLY)
    gone = lambda: not is_held(place.server_lock)  # noqa: E731
    if _within(timeout / 2, gone):
        return
    kill_servers(place)
    if not _within(timeout / 2, gone):
        raise EmbeddedError(
            "the server does not end",
            str(place.log),
            f"end pid {server_pid(place)} by hand",
            place.log_tail(),
        )


def _within(seconds: float, fact: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


def _ask(place: Place) -> _Answer | None:
    """Ask the server who it is; None if nobody answers as ours would."""
    address = place.address()
    # A port can be anybody's once our server is dead: never send the password there then.
    if isinstance(address, LoopbackAddress) and not is_held(place.server_lock):
        return None
    try:
        reply = ask(address, "INFO", timeout=_REPLY)
    except (OSError, ErrorReply):
        return None
    found = facts(reply) if isinstance(reply, str) else {}
    pid = found.get("process_id", "")
    if not pid.isdigit():
        return None
    return _Answer(int(pid), found.get("loading") == "1", int(found.get("connected_clients", "1")))


def _endpoint(place: Place, answer: _Answer, *, started: bool) -> Endpoint:
    return Endpoint(place.address().url, answer.pid, started)


def _no_answer(place: Place, answer: _Answer | None) -> EmbeddedError:
    if answer:
        return EmbeddedError(
            f"the server (pid {answer.pid}) is still reading its data",
            str(place.log),
            "wait for it, or allow more time",
            place.log_tail(),
        )
    return EmbeddedError(
        f"a server is alive in this directory (pid {server_pid(place) or 'unknown'}) and does not answer",
        str(place.log),
        "if it was stopped by a signal, send it SIGCONT; else kill it (its last second may be lost)",
        place.log_tail(),
    )


@contextlib.contextmanager
def _file_errors(place: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbeddedError(
            f"a file cannot be used: {error.strerror or error}",
            str(error.filename or place.root),
            "make room and check the permissions, or set broker.data_dir to another directory",
        ) from error
