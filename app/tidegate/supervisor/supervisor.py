"""The loop over all parts of a fleet on one machine: start, listen, start again, end together."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType

from tidegate import embedded
from tidegate.config import Settings
from tidegate.embedded.endpoint import is_embedded
from tidegate.supervisor.claim import Claim
from tidegate.supervisor.decision import Done, GiveUp, Restart, decide, reason
from tidegate.supervisor.family import Relative, descendants, left_of
from tidegate.supervisor.part import parts_of
from tidegate.supervisor.post import Failure, Post, Seen

#: seconds between two looks at everybody
LOOK = 0.1
#: seconds that a stop may take beyond `worker.drain_timeout` before the rest is killed
MARGIN = 10.0
#: seconds that the embedded server may take to read its data
STORE_PATIENCE = 60.0
#: name under which the supervisor itself speaks
SELF = "up"


class Supervisor:
    """Keeps workers, beats and an exporter running, and the embedded server where that is the store.

        with Supervisor(settings, workers=2, beats=2, exporter=False, say=print) as up:
            up.children   # (Seen(name="worker-1", pid=…, restarts=0), …)

    `settings` must be what a file or the environment says: the parts read it for themselves. say(name, line) hears
    every line of a part, and what the supervisor does under the name "up"; it is called from the loop's thread and must
    not block. As a context manager the loop runs in a thread, and the end of the block is `stop()` and a wait for
    everybody; `prepare` and `run` do the same in the caller's thread.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        workers: int = 1,
        beats: int = 1,
        exporter: bool = True,
        loglevel: str = "info",
        say: Callable[[str, str], None] = lambda name, line: None,
    ) -> None:
        self._settings = settings
        self._say = say
        self._posts = tuple(
            Post(part, say) for part in parts_of(settings, workers, beats, exporter, loglevel)
        )
        self._claim: Claim | None = None
        self._selector: selectors.BaseSelector
        self._waker: socket.socket | None = None
        self._stop = self._hurry = False
        self._asked: float | None = None
        self._killed = False
        self._family: set[Relative] = set()
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._crash: BaseException | None = None
        self.store: embedded.Endpoint | None = None  #: the embedded server, once prepared
        self.failure: Failure | None = None
        self.exit_code = 0  #: 0 a polite end, 1 somebody had to be killed, else that of `failure`

    # --- for any thread

    @property
    def children(self) -> tuple[Seen, ...]:
        """All parts, workers first."""
        return tuple(post.seen() for post in self._posts)

    @property
    def stopping(self) -> bool:
        return self._stop

    def stop(self, *, hurry: bool = False) -> None:
        """Ask everybody to end; with `hurry` kill them. Returns at once; harmless in a signal handler, and again."""
        self._stop, self._hurry = True, self._hurry or hurry
        if self._waker is not None:
            with contextlib.suppress(OSError):  # full: it will wake; closed: it has ended
                self._waker.send(b"!")

    def __enter__(self) -> Supervisor:
        self.prepare()
        self._thread = threading.Thread(target=self._run_in_thread, name="tidegate-up", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._crash is not None:
            raise self._crash
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._crash is not None and error is None:
            raise self._crash

    # --- for the thread that runs it

    def prepare(self) -> None:
        """Take the folder and start the embedded server. Raises AlreadyUp, EmbeddedError."""
        self._claim = Claim(self._settings.data_dir)
        try:
            if is_embedded(self._settings):
                self.store = embedded.ensure(self._settings.data_dir, timeout=STORE_PATIENCE)
        except BaseException:
            self._claim.close()
            raise

    def run(self, ready: Callable[[], None] = lambda: None) -> int:
        """Until `stop()` or a part that cannot run; returns the exit code. ready: called once all are started.

        To be called once, after `prepare`, from one thread that does not end before: the kernel takes the end of that
        thread for ours, and asks the parts to stop.
        """
        # no pipe: the number of a closed one may be another file's when somebody calls `stop` once more
        wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ, None)
        try:
            for post in self._posts:
                self._start(post)
            self._started.set()
            ready()
            while not self._over():
                self._turn()
            self._finish()
        finally:
            for post in self._posts:  # only after an error of our own
                if post.child is not None:
                    post.child.ask()
            self._selector.close()
            wake.close()
            self._waker.close()
            if self._claim is not None:
                self._claim.close()
        return self.exit_code

    def _run_in_thread(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - raised again where the block ends
            self._crash = error
        finally:
            self._started.set()

    def _turn(self) -> None:
        for key, _ in self._selector.select(LOOK):
            if isinstance(key.data, Post):
                key.data.listen()
            elif isinstance(key.fileobj, socket.socket):
                key.fileobj.recv(4096)
        if self._stop:
            self._end_all()
        for post in self._posts:
            self._look(post)

    def _over(self) -> bool:
        return self._asked is not None and all(post.child is None for post in self._posts)

    def _look(self, post: Post) -> None:
        """Collect a process that has ended and act on the decision; start one that is due."""
        if post.child is None:
            if not self._stop and time.monotonic() >= post.due:
                self._start(post)
            return
        status = post.child.ended()
        if status is not None:
            pid, started = post.child.pid, post.child.started
            post.bury()
            self._act(post, f"{post.part.name} (pid {pid}) has ended: {reason(status)}", status, started)

    def _act(self, post: Post, fact: str, status: int, started: float) -> None:
        now = time.monotonic()
        match decide(post.history, status, started=started, now=now, stopping=self._stop):
            case Restart(at, history):
                post.due, post.history = at, history
                self._say(SELF, f"{fact}; it is started again in {at - now:g} s")
            case GiveUp(code):
                self.failure = Failure(post.part.name, code, tuple(post.said))
                self.exit_code = code
                self._say(SELF, f"{fact}; another start would not change that: everything ends")
                self.stop()
            case Done():
                self._say(SELF, fact)

    def _start(self, post: Post) -> None:
        try:
            child = post.start(self._selector)
        except OSError as error:
            self._act(post, f"{post.part.name} cannot be started: {error}", 1, time.monotonic())
            return
        if post.restarts:
            self._say(SELF, f"{post.part.name} is started again, pid {child.pid}")

    # --- the end

    def _end_all(self) -> None:
        now = time.monotonic()
        running = [post.child for post in self._posts if post.child is not None]
        drain = self._settings.worker.drain_timeout
        if self._asked is None:
            self._asked = now
            self._family = descendants([child.pid for child in running])
            self._say(SELF, f"asking {len(running)} processes to stop; running jobs get up to {drain:g} s")
            for child in running:
                child.ask()
        if running and not self._killed and (self._hurry or now - self._asked >= drain + MARGIN):
            self._killed = True
            self._family |= descendants([child.pid for child in running])
            self._say(SELF, f"killing {len(running)} processes that have not ended")
            self.exit_code = self.exit_code or 1
        if self._killed:
            for child in running:
                child.kill()

    def _finish(self) -> None:
        """Everybody is gone: nothing of theirs may be left, nor a server that nobody needs."""
        for relative in left_of(self._family, 2.0):
            self._say(SELF, f"pid {relative.pid}, started by a job in a session of its own, goes on")
        assert self._claim is not None
        if self.store is not None:
            if not self._claim.started_store:
                self._say(SELF, "the store ran before and goes on")
            elif embedded.stop_unused(self._settings.data_dir):
                self._say(SELF, "the store is stopped; its data stay")
            else:
                self._say(SELF, "the store goes on: others use it")
        self._claim.empty()
