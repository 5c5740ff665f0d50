"""The dead letters of a fleet: looking through them, sending them back, and who did."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegate.domain.states import State
from tidegate.store import record
from tidegate.store.call import MAX_REPLAY, AuditLine, Death, Replayed
from tidegate.store.keyspace import decode_resource
from tidegate.store.store import Store

#: dead letters of one page
PAGE = 200


class Desk:
    """Over a store that is open."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def deaths(self, since_ms: int = 0, before_ms: int | None = None, page: int = PAGE) -> Iterator[Death]:
        """Dead letters that died since then and before that instant (now, if none is given), the oldest first.

        Read page by page. One that dies, or is replayed, while this goes on may be missed; none comes twice.
        Raises StoreUnavailable, StoreRefused.
        """
        at, over = since_ms, 0
        while True:
            before = 1 << 53 if before_ms is None else before_ms
            _, now_ms, *rows = self._store._one("deaths", at, over, before, page)
            before_ms = int(now_ms) + 1 if before_ms is None else before_ms
            for job_id, died, head, reason in rows:
                died_ms = int(float(died))
                over, at = (over + 1, at) if died_ms == at else (1, died_ms)
                if head:
                    yield record.death(job_id.decode(), died_ms, head, reason.decode())
            if len(rows) < page:
                return

    def death(self, operation_id: str, step: str = "") -> Death | None:
        """One dead letter by its name; None if no dead job has it."""
        found = self._store.job(operation_id, step)
        if found is None or found.state is not State.DEAD:
            return None
        return Death(
            found.job_id, found.generation, found.operation_id, found.step, found.queue, found.tenant,
            found.task, found.reason, 0, found.deadline_ms,
        )  # fmt: skip

    def replay(
        self, deaths: Sequence[Death], *, by: str, reason: str, detail: Mapping[str, Any]
    ) -> list[Replayed]:
        """Send at most a hundred back to their lines; one answer each, in order. The change and its line in the audit
        log are one step. Raises StoreUnavailable (`maybe_done`: asking again is safe), StoreRefused.
        """
        assert len(deaths) <= MAX_REPLAY
        entries = [word for one in deaths for word in (one.job_id, one.generation)]
        raw = self._store._one("replay", by, reason, json.dumps(detail), *entries)
        return [_replayed(line) for line in raw[1].decode().split("\n")] if deaths else []

    def audit(self, most: int = 50) -> tuple[AuditLine, ...]:
        """What people changed, the latest first."""
        _, *lines = self._store._one("audit", most)
        return tuple(_line(line) for line in lines)


def _replayed(line: str) -> Replayed:
    word, *more = line.split(" ")
    if word == "held":
        return Replayed(word, retry_after=int(more[0]) / 1000)
    if not more:
        return Replayed(word)
    return Replayed(word, decode_resource(more[0]), int(more[3]) / 1000)


def _line(flat: Sequence[bytes]) -> AuditLine:
    words = [word.decode("utf-8", "replace") for word in flat]
    fields = dict(zip(words[::2], words[1::2], strict=True))
    return AuditLine(
        int(fields["at"]), fields["by"], fields["command"], fields["reason"], int(fields["count"]),
        json.loads(fields["detail"]),
    )  # fmt: skip
