"""What the store is asked about schedules and their fires, and what it answers, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tidegate.domain.fire import Cursor, Decided, Fate, Mark
from tidegate.domain.job import NewJob
from tidegate.domain.verdict import Closed, Full, TooCostly
from tidegate.store.keyspace import decode, decode_resource, encode
from tidegate.store.line import Argument
from tidegate.store.record import enqueue_arguments

MOST_FIRES = 32  #: fires of one call


class Standing(NamedTuple):
    """Asks where a schedule stands. digest: of its times; cursor_ms: what the caller remembers, 0 = nothing."""

    schedule_id: str
    digest: str
    cursor_ms: int = 0

    def arguments(self) -> tuple[Argument, ...]:
        """Its part of the schedule script's arguments."""
        return encode(self.schedule_id), self.digest, self.cursor_ms


class Astray(Enum):
    """Why a schedule has no cursor for the one who asks."""

    UNKNOWN = "unknown"  #: nobody has adopted it
    EDITED = "edited"  #: somebody adopted it later with other times, so the caller's settings are old


class FireCall(NamedTuple):
    """Decided fires of one schedule, ascending, at most MOST_FIRES; each emitted one with its job."""

    schedule_id: str
    digest: str
    cursor_ms: int  #: that they were planned from
    fires: tuple[tuple[Decided, NewJob | None], ...]

    def arguments(self) -> list[Argument]:
        """Arguments of the fire script. Raises InvalidJob."""
        assert len(self.fires) <= MOST_FIRES, len(self.fires)
        flat: list[Argument] = [encode(self.schedule_id), self.digest, self.cursor_ms]
        for decided, job in self.fires:
            head = (
                decided.at_ms,
                decided.fate.value,
                decided.number,
                decided.first_ms,
                decided.detail or "-",
            )
            flat += (" ".join(map(str, head)), *(("-", "-") if job is None else enqueue_arguments(job)))
        return flat


@dataclass(frozen=True, slots=True)
class Fired:
    """fates: of the fires, up to the one that its queue refused (`refusal`), if any."""

    cursor_ms: int
    fates: tuple[Fate, ...]
    refusal: Full | Closed | TooCostly | None = None


class Unfit(Enum):
    """Why a call was not looked at; nothing was changed."""

    STALE_CURSOR = "stale_cursor"  #: somebody else was there first, or the schedule was edited
    UNKNOWN = "unknown"  #: nobody has adopted the schedule, or the server has forgotten it
    FUTURE = "future"  #: the server's clock has gone back since the plan was made
    HELD = "held"  #: the server came back and waits for its workers


FireReply = Fired | Unfit


@dataclass(frozen=True, slots=True)
class History:
    """Where a schedule stands, and its latest fires, the latest first. watermark_ms: marks up to there are gone."""

    cursor: Cursor
    watermark_ms: int
    marks: tuple[Mark, ...]


def standing(row: bytes) -> Cursor | Astray:
    """One row of the schedule script."""
    words = row.decode().split(" ")
    return Cursor(*map(int, words)) if len(words) == 3 else Astray(words[0])


def fired(call: FireCall, raw: Sequence[bytes]) -> FireReply:
    """Reply of the fire script, already known to be none of the words that no command should meet."""
    word, *rest = (part.decode() for part in raw)
    if word != "fired":
        return Unfit(word)
    cursor, *words = rest
    fates: list[Fate] = []
    for text in words:
        match text.split(" "):
            case "full", scope, depth, limit, retry_after:
                full = Full(decode_resource(scope), int(depth), int(limit), int(retry_after) / 1000)
                return Fired(int(cursor), tuple(fates), full)
            case ["closed"]:
                job = call.fires[len(fates)][1]
                return Fired(int(cursor), tuple(fates), Closed(job.queue if job else ""))
            case "never_runnable", resource, cost, capacity:
                never = TooCostly(decode_resource(resource), int(cost), int(capacity))
                return Fired(int(cursor), tuple(fates), never)
            case _:
                fates.append(Fate(text))
    return Fired(int(cursor), tuple(fates))


def history(row: Sequence[bytes]) -> tuple[str, History]:
    """One row of the history script."""
    name, state, *marks = (part.decode() for part in row)
    cursor, watermark, since, until, _ = state.split(" ")
    place = Cursor(int(cursor), int(since), int(until))
    return decode(name), History(place, int(watermark), tuple(map(_mark, marks)))


def _mark(text: str) -> Mark:
    time, fate, number, span, lag, detail = text.split(" ")
    decided = Decided(
        int(time), Fate(fate), int(time) - int(span), int(number), "" if detail == "-" else detail
    )
    return Mark(decided, int(lag))
