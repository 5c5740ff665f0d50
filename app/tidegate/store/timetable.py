"""The schedules of a fleet: where they stand, the door for their fires, and what became of those."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.domain.fire import Cursor
from tidegate.store import fire, reply
from tidegate.store.errors import OutOfMemoryError
from tidegate.store.fire import Astray, FireCall, Fired, FireReply, History, Standing
from tidegate.store.keyspace import encode
from tidegate.store.script import load
from tidegate.store.store import NO_MEMORY, Store

#: fire scripts in flight at once
_FIRES = 64


class Timetable:
    """Over a store that is open."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def cursors(self, asked: Sequence[Standing], adopt: bool = False) -> tuple[int, list[Cursor | Astray]]:
        """The server's time (ms), and where each of these schedules stands. adopt: begin those never seen, and those
        whose times are other ones now; a beat process does that once, when it starts, so that the latest one wins.

        Raises StoreUnavailable, StoreRefused.
        """
        arguments = [word for one in asked for word in one.arguments()]
        _, now_ms, *rows = self._store._one("schedule", int(adopt), *arguments)
        return int(now_ms), [fire.standing(row) for row in rows]

    def fire(self, calls: Sequence[FireCall]) -> list[FireReply]:
        """Decide fires: one script per call, all of them in flight at once; what became of each, in order.

        Each call holds as a whole for its own schedule. Raises StoreUnavailable, StoreRefused: nothing is known then,
        and planning again from the cursors is safe.
        """
        store = self._store
        replies: list[FireReply] = []
        for at in range(0, len(calls), _FIRES):
            part = calls[at : at + _FIRES]
            scripts = [(load("fire"), call.arguments()) for call in part]
            answers = store._run(scripts, store.settings.fleet.enqueue_timeout)
            for call, answer in zip(part, answers, strict=True):
                if isinstance(answer, OutOfMemoryError):
                    replies.append(Fired(call.cursor_ms, (), NO_MEMORY))
                else:
                    replies.append(fire.fired(call, reply.checked(answer, store.target.shown)))
        return replies

    def history(self, schedules: Sequence[str], most: int = 1) -> dict[str, History]:
        """Where these schedules stand and what became of their latest fires, the latest first; only those known.

        Raises StoreUnavailable, StoreRefused.
        """
        _, *rows = self._store._one("history", most, *map(encode, schedules))
        return dict(fire.history(row) for row in rows)
