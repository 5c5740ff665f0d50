"""A proxy in front of a real server that loses, delays and cuts, exactly where a test says.

It forwards whole commands and whole replies, so "after the third command was forwarded, lose its reply" is an exact
place. Every order has taken effect when its method returns.
"""

from __future__ import annotations

import contextlib
import selectors
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import guard
from .address import Listen, Listener, connect
from .link import Cut, Link, Part, Pipe
from .resp import Frame

T = TypeVar("T")
Match = str | Callable[[Frame], bool] | None


class Proxy:
    """`with Proxy(server.url) as proxy: client = Redis.from_url(proxy.url)`.

    listen: how clients reach it (unix or tcp), whatever the server listens on.
    """

    def __init__(self, upstream: str, *, listen: Listen = "unix") -> None:
        self._upstream = upstream
        self.directory = Path(tempfile.mkdtemp(prefix="tg-"))
        guard.register_directory(self.directory)
        self._listener = Listener(listen, self.directory / "p.sock")
        self._links: set[Link] = set()
        self._cuts: list[Cut] = []
        self._forwarded: Counter[str] = Counter()
        self._accepted = 0
        self._delays = {Part.REQUEST: 0.0, Part.REPLY: 0.0}
        self._swallow_new = False
        self._orders: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector.register(self._wake_reader, selectors.EVENT_READ, None)
        self._watch_listener()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._listener.url

    # -- facts --

    @property
    def forwarded(self) -> Counter[str]:
        """How many commands went to the server so far, by name."""
        return self._do(lambda: Counter(self._forwarded))

    @property
    def accepted(self) -> int:
        """Connections accepted so far."""
        return self._do(lambda: self._accepted)

    @property
    def connected(self) -> int:
        """Connections open now, the half-open ones included."""
        return self._do(lambda: len(self._links))

    # -- faults --

    def cut(self) -> int:
        """Reset every connection now; returns how many there were. New ones are accepted."""
        return self._do(self._cut_all)

    def half_open(self, *, new: bool = False) -> int:
        """From now on every present connection swallows all bytes both ways and stays open, for ever (a firewall that
        forgot it). new: also the connections made until `heal`. Returns how many are swallowed.
        """

        def order() -> int:
            for link in self._links:
                link.swallowed = True
            self._swallow_new = new
            return len(self._links)

        return self._do(order)

    def delay(self, seconds: float, *, part: Part | None = None) -> None:
        """Every request and reply (or only one of them) waits this long on its way. 0 ends that."""

        def order() -> None:
            for each in Part:
                if part in (None, each):
                    self._delays[each] = seconds

        self._do(order)

    def refuse(self) -> None:
        """New connections are refused (nobody listens); present ones go on."""
        self._do(self._close_listener)

    def heal(self) -> None:
        """Accept again, no delay, no order left. What is half-open stays so: nothing can bring its bytes back."""

        def order() -> None:
            if self._listener.socket is None:
                self._listener.open()
                self._watch_listener()
            self._swallow_new = False
            self._delays = dict.fromkeys(Part, 0.0)
            self._cuts.clear()

        self._do(order)

    def lose_reply(self, match: Match = None, *, after: int = 1, keep: int = 0) -> Cut:
        """The server gets the `after`-th matching command from now and answers it; the answer is lost and the
        connection reset. match: a command's name, a function of its frame, or None for any. keep: let so many bytes of
        the reply through first (the connection then ends orderly, so that they arrive).
        """
        return self._order(Cut(Part.REPLY, after, _matcher(match), keep))

    def lose_request(self, match: Match = None, *, after: int = 1, keep: int = 0) -> Cut:
        """The `after`-th matching command does not reach the server (or only its first `keep` bytes do) and the
        connection is reset: to the client it looks just like a lost reply.
        """
        return self._order(Cut(Part.REQUEST, after, _matcher(match), keep))

    def close(self) -> None:
        """End the proxy and every connection through it."""
        if self._thread.is_alive():

            def order() -> None:
                self._ending = True

            self._do(order)
            self._thread.join(timeout=10)
        shutil.rmtree(self.directory, ignore_errors=True)

    # -- the thread --

    def _order(self, cut: Cut) -> Cut:
        self._do(lambda: self._cuts.append(cut))
        return cut

    def _do(self, action: Callable[[], T]) -> T:
        """Run `action` in the proxy's thread, between two events, and return what it returns."""
        result: list[T] = []
        done = threading.Event()

        def order() -> None:
            result.append(action())
            done.set()

        with self._lock:
            self._orders.append(order)
        self._wake_writer.send(b"x")
        assert done.wait(10), "the proxy's thread has ended"
        return result[0]

    def _run(self) -> None:
        while not self._ending:
            for key, _ in self._selector.select(self._patience()):
                if key.fileobj is self._wake_reader:
                    self._obey()
                elif key.fileobj is self._listener.socket:
                    self._accept()
                elif key.data in self._links:
                    self._receive(key.data, key.fileobj)
            self._pump()
        self._close_listener()
        self._cut_all()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _patience(self) -> float | None:
        """Seconds until the next delayed byte may leave."""
        pipes = [pipe for link in self._links if not link.swallowed for pipe in _pipes(link)]
        dues = [due for pipe in pipes if (due := pipe.next_due()) is not None]
        # A full socket is tried again after 1 ms: simpler than asking for it, and tests send little.
        return max(0.001, min(dues) - time.monotonic()) if dues else None

    def _obey(self) -> None:
        self._wake_reader.recv(4096)
        with self._lock:
            orders, self._orders = self._orders, []
        for order in orders:
            order()

    def _accept(self) -> None:
        client = self._listener.accept()
        self._accepted += 1
        try:
            server = connect(self._upstream)
        except OSError:
            client.close()  # the server is down: the client sees its connection end
            return
        link = Link(client, server)
        link.swallowed = self._swallow_new
        self._links.add(link)
        for end in (client, server):
            end.setblocking(False)
            self._selector.register(end, selectors.EVENT_READ, link)

    def _receive(self, link: Link, source: object) -> None:
        from_client = source is link.client
        end = link.client if from_client else link.server
        try:
            data = end.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if link.swallowed:
            if not data:
                self._selector.unregister(end)  # nobody tells the other side
        elif not data:
            self._ended(link, from_client)
        elif from_client:
            self._requests(link, data)
        else:
            self._replies(link, data)

    def _ended(self, link: Link, from_client: bool) -> None:
        """What was sent before the end still arrives, then the end."""
        self._selector.unregister(link.client if from_client else link.server)
        pipe, frames, part = (
            (link.to_server, link.requests, Part.REQUEST)
            if from_client
            else (link.to_client, link.replies, Part.REPLY)
        )
        due = self._due(part)
        if frames.pending:
            pipe.put(frames.pending, due)
        pipe.put(None, due)

    def _requests(self, link: Link, data: bytes) -> None:
        for frame in link.requests.feed(data):
            cut = next((cut for cut in self._cuts if cut.claims(frame)), None)
            if cut is not None:
                self._cuts.remove(cut)
                if cut.part is Part.REQUEST:
                    self._cut_off(link, cut, link.to_server, frame)
                    return
            self._forwarded[frame.command] += 1
            link.expect_reply(frame, cut)
            link.to_server.put(frame.raw, self._due(Part.REQUEST))

    def _replies(self, link: Link, data: bytes) -> None:
        for frame in link.replies.feed(data):
            if cut := link.cut_for(frame):
                self._cut_off(link, cut, link.to_client, frame)
                return
            link.to_client.put(frame.raw, self._due(Part.REPLY))

    def _cut_off(self, link: Link, cut: Cut, pipe: Pipe, frame: Frame) -> None:
        pipe.pump(float("inf"))  # what came before the cut arrives, delayed or not
        if cut.keep:
            with contextlib.suppress(OSError):
                pipe.target.sendall(frame.raw[: cut.keep])
        self._drop(link, reset=not cut.keep)
        cut.done.set()

    def _due(self, part: Part) -> float:
        return time.monotonic() + self._delays[part]

    def _pump(self) -> None:
        now = time.monotonic()
        for link in list(self._links):
            if link.swallowed:
                continue
            alive = [pipe.pump(now) for pipe in _pipes(link)]
            if not all(alive):
                self._drop(link)

    def _watch_listener(self) -> None:
        assert self._listener.socket is not None
        self._selector.register(self._listener.socket, selectors.EVENT_READ, None)

    def _close_listener(self) -> None:
        if self._listener.socket is not None:
            self._selector.unregister(self._listener.socket)
            self._listener.close()

    def _cut_all(self) -> int:
        count = len(self._links)
        for link in list(self._links):
            self._drop(link, reset=True)
        return count

    def _drop(self, link: Link, *, reset: bool = False) -> None:
        for end in (link.client, link.server):
            with contextlib.suppress(KeyError):
                self._selector.unregister(end)
        self._links.discard(link)
        link.close(reset=reset)


def _pipes(link: Link) -> tuple[Pipe, Pipe]:
    return link.to_client, link.to_server


def _matcher(match: Match) -> Callable[[Frame], bool]:
    if match is None:
        return lambda _: True
    if isinstance(match, str):
        name = match.upper()
        return lambda frame: frame.command == name
    return match
