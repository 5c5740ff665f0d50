"""One part with its present process, or the wait for its next one, and what it says."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.supervisor.child import Child
from tidegate.supervisor.decision import History
from tidegate.supervisor.lines import Lines
from tidegate.supervisor.part import Part

_REMEMBERED = 40  # lines of a part that `Failure` can repeat
_LAST_WORDS = 32  # reads after its end: more than a pipe holds


@dataclass(frozen=True, slots=True)
class Seen:
    """A part now. pid: 0 while it waits for its next start; restarts: since the supervisor began."""

    name: str
    pid: int
    restarts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The part that ended everything. said: the last lines of its last life."""

    name: str
    exit_code: int
    said: tuple[str, ...]


class Post:
    """due: monotonic seconds of the next start, while there is no child. say(name, line) hears every line."""

    def __init__(self, part: Part, say: Callable[[str, str], None]) -> None:
        self.part = part
        self.history = History()
        self.due = 0.0
        self.restarts = -1
        self.child: Child | None = None
        self.said: deque[str] = deque(maxlen=_REMEMBERED)
        self._say = say
        self._lines = Lines()
        self._selector: selectors.BaseSelector | None = None

    def seen(self) -> Seen:
        """For any thread."""
        child = self.child
        return Seen(self.part.name, child.pid if child else 0, max(0, self.restarts))

    def start(self, selector: selectors.BaseSelector) -> Child:
        """The next life; its output is this post's key in the selector. Raises OSError."""
        self.restarts += 1
        self.said.clear()
        self.child = child = Child(self.part.command())
        self._selector = selector
        selector.register(child.output, selectors.EVENT_READ, self)
        return child

    def listen(self) -> bool:
        """One read; False if there was nothing, or nothing will come any more."""
        if self.child is None or self._selector is None:
            return False
        data = self.child.read()
        if data is None:
            self._deaf()
        self._hear(self._lines.feed(data or b""))
        return bool(data)

    def bury(self) -> None:
        """Its process has ended: hear its last words. Who escaped its session and still writes is not waited for."""
        for _ in range(_LAST_WORDS):
            if not self.listen():
                break
        self._hear(self._lines.end())
        self._deaf()
        if self.child is not None:
            self.child.close()
            self.child = None

    def _deaf(self) -> None:
        if self.child is not None and self._selector is not None:
            self._selector.unregister(self.child.output)
            self._selector = None

    def _hear(self, lines: list[str]) -> None:
        for line in lines:
            self.said.append(line)
            self._say(self.part.name, line)
