"""One client's connection through the proxy: two sockets, two directions, and the faults ordered for them."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .resp import Frame, Frames

_NO_LINGER = struct.pack("ii", 1, 0)  # close() sends RST and throws away what is not sent yet
_SUBSCRIBES = {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR"}


class Part(enum.Enum):
    """What of one exchange a fault cuts."""

    REQUEST = "request"
    REPLY = "reply"


@dataclass(eq=False, slots=True)
class Cut:
    """An order: at the `after`-th matching command from now, let `keep` bytes of the part through, then cut.

    `done` is set when it has happened; `command` is then the command it hit.
    """

    part: Part
    after: int
    matches: Callable[[Frame], bool]
    keep: int = 0
    seen: int = 0
    command: Frame | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def claims(self, command: Frame) -> bool:
        """Whether this is the command to hit; counts it."""
        if self.command is not None or not self.matches(command):
            return False
        self.seen += 1
        if self.seen < self.after:
            return False
        self.command = command
        return True

    def wait(self, timeout: float = 30.0) -> Frame:
        """Until it has happened; returns the command that was hit."""
        if not self.done.wait(timeout):
            state = "hit, and no reply came" if self.command else f"matched {self.seen} commands so far"
            raise AssertionError(f"waited {timeout:g} s for the {self.part.value} to be cut ({state})")
        assert self.command is not None
        return self.command


class Pipe:
    """Bytes on their way to one socket, each with the instant (monotonic seconds) before which it may not leave."""

    def __init__(self, target: socket.socket) -> None:
        self.target = target
        self._queue: deque[tuple[float, bytes | None]] = deque()

    def put(self, data: bytes | None, due: float) -> None:
        """None: close the connection when all before it has left."""
        self._queue.append((due, data))

    def next_due(self) -> float | None:
        return self._queue[0][0] if self._queue else None

    def pump(self, now: float) -> bool:
        """Send what is due and fits. False: the close marker was reached, or the peer is gone."""
        while self._queue and self._queue[0][0] <= now:
            due, data = self._queue.popleft()
            if data is None:
                return False
            try:
                sent = self.target.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return False
            if sent < len(data):
                self._queue.appendleft((due, data[sent:]))
                break
        return True


class Link:
    """A client's socket and the server's, joined."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.to_client, self.to_server = Pipe(client), Pipe(server)
        self.requests, self.replies = Frames(), Frames()
        self.awaiting: deque[Cut | None] = deque()  # one entry per command whose reply has not come
        self.swallowed = False  # half-open: both sides believe that they are connected
        self._subscribed = False

    def expect_reply(self, command: Frame, cut: Cut | None) -> None:
        if command.command in _SUBSCRIBES:
            self._subscribed = True  # replies come on their own now: none can be told to belong to a command
        if not self._subscribed:
            self.awaiting.append(cut)

    def cut_for(self, reply: Frame) -> Cut | None:
        """The order for this reply; None if it passes."""
        if reply.is_push or self._subscribed or not self.awaiting:
            return None
        return self.awaiting.popleft()

    def close(self, *, reset: bool = False) -> None:
        """reset: the client sees a reset instead of an orderly end (TCP; a unix socket knows only ends)."""
        if reset:
            with contextlib.suppress(OSError):
                self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.client.close()
        self.server.close()
