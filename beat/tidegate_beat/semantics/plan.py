"""What becomes of the fires that are due: which are emitted, and the fate of the others (DESIGN §7). Pure.

A fire that is late by more than the grace was missed by an outage, and `catch_up` says what happens to it. One within
the grace is emitted whatever catch_up says: one emitter has died and another is taking over. One that its queue has
refused was not missed either: it waits, until `start_deadline`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice

from tidegate.config.schedule import CatchUp
from tidegate.domain.fire import Cursor, Decided, Fate, Missed, instant_of, milliseconds_of
from tidegate_beat.semantics.fire import FireTime
from tidegate_beat.semantics.schedule import Times

#: ms; the time in which another emitter takes over
GRACE = 10_000
#: decisions of one plan; what is due beyond them is planned again from the new cursor
MOST = 256
#: a stretch of missed fires is counted up to here
COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Spec:
    """What decides about the fires of a schedule. Durations in ms; most: fires that catching up emits, or that may wait
    for a full queue; deadline: of the job, from its logical time, 0 = none."""

    times: Times
    catch_up: CatchUp
    window: int
    most: int
    start_deadline: int
    deadline: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """decided: ascending; EMITTED means: to be emitted. next_ms: when there is something to plan again once these are
    done; None = never."""

    decided: tuple[Decided, ...]
    next_ms: int | None


def plan(specs: Mapping[str, Spec], cursors: Mapping[str, Cursor], now_ms: int) -> dict[str, Plan]:
    """What to do now about each schedule that has a cursor."""
    return {name: plan_one(specs[name], cursor, now_ms) for name, cursor in cursors.items()}


def plan_one(spec: Spec, cursor: Cursor, now_ms: int) -> Plan:
    """The same for one schedule."""
    fires = spec.times.fires(_last_of(cursor.at_ms))
    first = next(fires, None)
    if first is None:
        return Plan((), None)
    first_ms = milliseconds_of(first.at)
    if first_ms > now_ms:
        return Plan((), first_ms)
    decided: list[Decided] = []
    outage_end = now_ms - GRACE - 1
    if first_ms <= outage_end:
        decided += islice(_late(spec, cursor, now_ms, outage_end), MOST)
        if len(decided) == MOST:
            return Plan(tuple(decided), now_ms)
        fires = spec.times.fires(_last_of(outage_end))
    else:
        fires = chain((first,), fires)
    for fire in fires:
        at_ms = milliseconds_of(fire.at)
        if at_ms > now_ms or len(decided) == MOST:
            return Plan(tuple(decided), at_ms)
        decided.append(_single(spec, cursor, at_ms, now_ms))
    return Plan(tuple(decided), None)


def _late(spec: Spec, cursor: Cursor, now_ms: int, end: int) -> Iterator[Decided]:
    """The fires up to `end`: first those that wait for room in their queue, then those that an outage has missed."""
    waited = max(cursor.at_ms, min(cursor.full_until_ms, end))
    yield from _the_last(spec, cursor, cursor.at_ms, waited, now_ms, spec.most)
    if spec.catch_up is CatchUp.SKIP:
        yield from _stretch(spec, waited, end, Fate.MISSED, Missed.CATCH_UP.value)
        return
    window = max(waited, min(now_ms - spec.window - 1, end))
    yield from _stretch(spec, waited, window, Fate.MISSED, Missed.CATCH_UP_WINDOW.value)
    latest = spec.catch_up is CatchUp.LATEST
    yield from _the_last(spec, cursor, window, end, now_ms, 1 if latest else spec.most, latest)


def _the_last(
    spec: Spec, cursor: Cursor, after: int, end: int, now_ms: int, most: int, coalesce: bool = False
) -> Iterator[Decided]:
    """The last `most` fires in after < time ≤ end, one by one, and before them what becomes of the earlier ones."""
    kept = _latest(spec, after, end, most)
    if not kept:
        return
    if coalesce:
        yield from _stretch(spec, after, kept[0] - 1, Fate.COALESCED, str(kept[0]))
    else:
        yield from _stretch(spec, after, kept[0] - 1, Fate.MISSED, Missed.CATCH_UP_MAX.value)
    for at_ms in kept:
        yield _single(spec, cursor, at_ms, now_ms)


def _single(spec: Spec, cursor: Cursor, at_ms: int, now_ms: int) -> Decided:
    if spec.deadline and at_ms + spec.deadline <= now_ms:
        return Decided(at_ms, Fate.MISSED, at_ms, detail=Missed.DEADLINE.value)
    refused = cursor.full_since_ms > 0 and at_ms <= cursor.full_until_ms
    if refused and max(at_ms, cursor.full_since_ms) + spec.start_deadline <= now_ms:
        return Decided(at_ms, Fate.MISSED, at_ms, detail=Missed.START_DEADLINE.value)
    return Decided(at_ms, Fate.EMITTED, at_ms)


def _stretch(spec: Spec, after: int, end: int, fate: Fate, detail: str) -> Iterator[Decided]:
    """One decision about all fires in after < time ≤ end, if there is any."""
    first = last = number = 0
    for fire in islice(_between(spec, after, end), COUNTED):
        last = milliseconds_of(fire.at)
        first, number = first or last, number + 1
    if number == COUNTED:
        last = _latest(spec, after, end, 1)[0]
    if number:
        yield Decided(last, fate, first, number, detail)


def _latest(spec: Spec, after: int, end: int, most: int) -> list[int]:
    """The times of the last `most` fires in after < time ≤ end, ascending."""
    found = [milliseconds_of(fire.at) for fire in islice(_between(spec, after, end), most + 1)]
    if len(found) <= most:
        return found
    # There are more, and schedules can be asked forwards only: look back from the end, twice as far each time.
    back = max(found[-1] - found[0], 1)
    while True:
        back *= 2
        start = max(after, end - back)
        tail = deque((milliseconds_of(fire.at) for fire in _between(spec, start, end)), maxlen=most)
        if len(tail) == most or start == after:
            return list(tail)


def _between(spec: Spec, after: int, end: int) -> Iterator[FireTime]:
    return spec.times.between(_last_of(after), _last_of(end)) if end > after else iter(())


def _last_of(milliseconds: int) -> datetime:
    """The last microsecond of that millisecond: a fire counts by its millisecond."""
    return instant_of(milliseconds) + timedelta(microseconds=999)
