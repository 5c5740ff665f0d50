"""The walk through a plan: batches at a pace, until all is done or there is no more room."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.service.actor import Actor
from tidegate.store import Death, Desk, Replayed
from tidegate.store.call import MAX_REPLAY

#: (dead letters looked at, of how many, answers so far)
Progress = Callable[[int, int, Counter[str]], None]
#: answers that say: nothing more for this queue, or this tenant, now
_NO_ROOM = ("full", "pressure", "closed")
#: seconds to wait for a store that came back and waits for its workers
_HELD = 0.2


@dataclass(frozen=True, slots=True)
class Pace:
    """rate: dead letters per second, None: as fast as the store takes them. most: so many at most."""

    rate: float | None = None
    most: int | None = None


@dataclass(slots=True)
class Result:
    """words: answers of the store and how often it gave each (`ok`: replayed). left: not tried, or no room for them.

    stopped: what had no room, as the store names it, with the seconds after which it may.
    """

    words: Counter[str] = field(default_factory=Counter)
    left: int = 0
    stopped: dict[str, float] = field(default_factory=dict)

    @property
    def replayed(self) -> int:
        return self.words["ok"]

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        refused = {word: number for word, number in self.words.items() if word != "ok"}
        return {"replayed": self.replayed, "refused": refused, "left": self.left, "stopped": self.stopped}


def run(
    desk: Desk, deaths: Sequence[Death], who: Actor, detail: Mapping[str, Any], pace: Pace, progress: Progress
) -> Result:
    """Send them back in this order. Raises StoreUnavailable, StoreRefused."""
    result, start, sent = Result(), time.monotonic(), 0
    line = deque(deaths[: pace.most])
    while batch := _next_batch(line, result, pace):
        if pace.rate is not None:
            time.sleep(max(0.0, start + sent / pace.rate - time.monotonic()))
        answers = desk.replay(batch, by=who.by, reason=who.reason, detail=detail)
        held = [one for one, answer in zip(batch, answers, strict=True) if answer.word == "held"]
        line.extendleft(reversed(held))  # to the front, in their order
        for one, answer in zip(batch, answers, strict=True):
            if answer.word != "held":
                _note(result, one, answer)
        sent += len(batch)
        progress(len(deaths) - len(line), len(deaths), result.words)
        if held:
            time.sleep(_HELD)
    result.left += max(0, len(deaths) - (pace.most or len(deaths)))
    return result


def _next_batch(line: deque[Death], result: Result, pace: Pace) -> list[Death]:
    """The next ones for which there may be room; the others are left."""
    size = MAX_REPLAY if pace.rate is None else max(1, min(MAX_REPLAY, int(pace.rate)))
    batch: list[Death] = []
    while line and len(batch) < size:
        one = line.popleft()
        if _scopes(one) & result.stopped.keys():
            result.left += 1
        else:
            batch.append(one)
    return batch


def _note(result: Result, one: Death, answer: Replayed) -> None:
    if answer.word in _NO_ROOM:
        result.left += 1
        result.stopped[answer.scope or f"queue:{one.queue}"] = answer.retry_after
    else:
        result.words[answer.word] += 1


def _scopes(one: Death) -> set[str]:
    return {"store", f"queue:{one.queue}", f"tenant:{one.tenant}"}
