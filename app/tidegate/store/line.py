"""A line to the store: one connection, one client id, one request at a time, each answered exactly once.

A reply can be lost after its script ran. The line sends the same request id again and the script gives its first answer
again. redis-py's own retries are off: they would replay commands blindly.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from redis.exceptions import (
    BusyLoadingError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from tidegate.domain.errors import StoreUnavailable
from tidegate.store.connection import Target
from tidegate.store.script import Script, library, load

Argument = str | bytes | int
#: the server is there but cannot serve yet (loading, failing over): as good as no answer
NOT_READY = (BusyLoadingError, ReadOnlyError, MasterDownError, TryAgainError)
#: the connection is of no use any more; the request may have been carried out
BROKEN = (ConnectionError, TimeoutError, OSError)
_PAUSE = 0.05  # seconds between two attempts to reach a server that is down
_PATIENCE = 1.0  # seconds of silence after which a connection is taken for dead


def packed(command: Sequence[Argument]) -> bytes:
    """A command as it goes over the wire (RESP); redis-py's own packing takes a tenth of a worker's time for a job."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in words])


class Engine:
    """How scripts are called at one server: as functions, or by hash where the server does not take a library."""

    def __init__(self) -> None:
        self.functions = True

    def verb(self, script: Script, whole: bool) -> tuple[str, str]:
        """The command and its first argument. whole: the server does not know the script, so send its source."""
        if whole:
            return "EVAL", script.source
        return ("FCALL", script.function) if self.functions and script.function else ("EVALSHA", script.sha)


def is_unknown(reply: object) -> bool:
    """True for the answer that the server does not know a script or function."""
    return isinstance(reply, NoScriptError) or (
        isinstance(reply, ResponseError) and "function not found" in str(reply).lower()
    )


class Line:
    """Not thread-safe: the store lends one to each caller."""

    def __init__(self, target: Target, prefix: str, engine: Engine) -> None:
        self._target, self._prefix, self._engine = target, prefix, engine
        # redis-py's connections are typed in part only
        self._connection: Any = target.connect(_PATIENCE)
        self._request = 0
        self.client = secrets.token_hex(8)

    def close(self) -> None:
        """Drop the connection."""
        self._connection.disconnect()

    def run(self, calls: Sequence[tuple[Script, Sequence[Argument]]], timeout: float) -> list[Any]:
        """Run scripts in one pipeline and give each reply, an exception of the server as a value.

        timeout: seconds for everything, reconnects and replays included. Raises StoreUnavailable after that.
        """
        self._request += 1
        deadline = time.monotonic() + timeout
        calls = list(calls)
        replies: list[Any] = [None] * len(calls)
        doubtful: set[int] = set()  # sent on a connection that broke: they may have run
        open_calls = list(range(len(calls)))
        whole: set[int] = set()  # scripts that the server does not know: sent as source
        sent = False
        while True:
            reason, unknown = "", False
            try:
                self._connect(min(_PATIENCE, deadline - time.monotonic()))
                sent = True
                for index, reply in zip(open_calls, self._exchange(calls, open_calls, whole), strict=True):
                    if is_unknown(reply):
                        whole.add(index)
                        unknown = True
                    elif (
                        isinstance(reply, NoPermissionError)
                        and self._engine.functions
                        and "'fcall'" in str(reply)
                    ):
                        self._engine.functions = False  # an ACL without it: scripts do as well
                    elif isinstance(reply, NOT_READY):
                        reason = str(reply)
                    elif (
                        isinstance(reply, OutOfMemoryError)
                        and index in doubtful
                        and calls[index][0].name == "enqueue"
                    ):
                        # full memory refuses the replay, not the question
                        calls[index] = load("answered"), ()
                        whole.discard(index)
                    elif calls[index][0].name == "answered" and reply == [b"none"]:
                        replies[index] = OutOfMemoryError("nothing was done, and now the memory is full")
                    else:
                        replies[index] = reply
                open_calls = [i for i in open_calls if replies[i] is None]
                if unknown:
                    self._load_library()
                if not open_calls:
                    return replies
                if not reason:
                    continue
            except BROKEN as exc:
                reason = str(exc) or type(exc).__name__
                doubtful.update(open_calls)
                self._connection.disconnect()
            except NOT_READY as exc:  # the handshake itself was refused
                reason = str(exc)
                self._connection.disconnect()
            if time.monotonic() + _PAUSE >= deadline:
                self._connection.disconnect()
                raise StoreUnavailable(self._target.shown, reason, maybe_done=sent)
            time.sleep(_PAUSE)

    def _load_library(self) -> None:
        """The server knows none of our functions (new, or flushed); this call is carried by EVAL all the same."""
        if self._engine.functions:
            self._connection.send_command("FUNCTION", "LOAD", "REPLACE", library().source)
            answer = self._read()
            # refused (by an ACL): scripts do as well. Out of memory: another time
            self._engine.functions = not isinstance(answer, ResponseError) or isinstance(
                answer, OutOfMemoryError
            )

    def command(self, *args: Argument, timeout: float = 2.0, repeat: bool = False) -> Any:
        """One plain command (INFO, WAITAOF). Raises StoreUnavailable; a ResponseError is returned.

        repeat: send it once more if the connection turns out to be dead, as one is after a restart of the server.
        Not for WAITAOF, which asks about the writes of its own connection.
        """
        try:
            self._connect(timeout)
            self._connection.send_command(*args)
            return self._read()
        except BROKEN as exc:
            self._connection.disconnect()
            if repeat and not isinstance(exc, TimeoutError):
                return self.command(*args, timeout=timeout)
            raise StoreUnavailable(self._target.shown, str(exc) or type(exc).__name__) from exc

    def _connect(self, timeout: float) -> None:
        bound = max(timeout, _PAUSE)
        if self._connection._sock is None:
            self._connection.socket_timeout = bound
            self._connection.connect()
        if self._connection._sock is not None:
            self._connection._sock.settimeout(bound)

    def _exchange(
        self, calls: Sequence[tuple[Script, Sequence[Argument]]], which: Sequence[int], whole: set[int]
    ) -> list[Any]:
        commands: list[bytes] = []
        for index in which:
            script, args = calls[index]
            client = self.client if len(calls) == 1 else f"{self.client}.{index}"
            call = (1, self._prefix, client, self._request, self._connection.run_id, *args)
            commands.append(packed((*self._engine.verb(script, index in whole), *call)))
        self._connection.send_packed_command(commands)
        return [self._read() for _ in which]

    def _read(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as exc:
            return exc
