"""Emits what schedules have due. Any number of emitters may run: the store takes each fire once.

An emitter keeps no state that counts. It knows when each schedule has something to do next, asks the store where those
stand whose time has come, plans from there, and offers the plan to the fire script, which takes it only if nobody was
there first.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Iterable, Mapping
from itertools import islice

from tidegate.config import Settings
from tidegate.domain.fire import Cursor, Decided, Fate, utc_text
from tidegate.domain.verdict import Closed, Full, TooCostly
from tidegate.store import Astray, FireCall, FireReply, Standing, Store, Timetable, Unfit
from tidegate.store.fire import MOST_FIRES
from tidegate.telemetry.faultpoint import reach
from tidegate_beat.registry import Schedule, job
from tidegate_beat.semantics.plan import Plan, plan

log = logging.getLogger(__name__)

#: schedules of one round
BATCH = 500
#: ms until a schedule is looked at again that cannot go on now: no room, a hold
AGAIN = 1_000
#: the same for one whose times another beat process knows better
PASSIVE = 10_000
#: ms that the server's clock must go back for all schedules to be looked at anew
JUMP = 60_000
#: seconds of sleep at most
LONGEST = 1.0


class Emitter:
    """One per beat process."""

    def __init__(self, store: Store, settings: Settings, schedules: Mapping[str, Schedule]) -> None:
        self._settings, self._schedules = settings, schedules
        self._timetable = Timetable(store)
        self._new = set(schedules)  # not yet adopted by this process
        self._open = dict.fromkeys(schedules)  # to be looked at now, the first one first
        self._later: list[tuple[int, str]] = []  # (ms, schedule): when to look at the others
        self._known: dict[str, int] = {}  # cursors, in case the server forgets them
        self._troubled: set[str] = set()  # said in the log, until it is over
        self._ahead = 0.0  # the server's clock less this process's monotonic one, ms; 0 = not known yet

    def step(self) -> bool:
        """One round; True if there is more to do. Raises StoreUnavailable, StoreRefused: the same comes again."""
        self._wake()
        names = list(islice(self._open, BATCH))
        adopt = [name for name in names if name in self._new]
        asked = adopt or names
        now_ms, rows = self._timetable.cursors(
            [Standing(name, self._schedules[name].digest, self._known.get(name, 0)) for name in asked],
            adopt=bool(adopt),
        )
        self._new.difference_update(adopt)
        self._note_clock(now_ms)
        standing: dict[str, Cursor] = {}
        for name, row in zip(asked, rows, strict=True):
            if isinstance(row, Cursor):
                standing[name] = row
                self._known[name] = row.at_ms
            elif row is Astray.UNKNOWN:
                self._new.add(name)
            else:
                self._trouble(
                    name, "another beat process runs with other times for it, so this one leaves it"
                )
                self._look(name, now_ms + PASSIVE)
        plans = plan({name: self._schedules[name].spec for name in standing}, standing, now_ms)
        for name in [name for name, found in plans.items() if not found.decided]:
            self._look(name, plans.pop(name).next_ms)
        if plans:
            reach("fire.planned")
            self._emit(standing, plans, now_ms)
        return bool(self._open)

    def rest(self) -> float:
        """Seconds until there is something to do, at most LONGEST."""
        if not self._later:
            return LONGEST
        return min(LONGEST, max(0.0, (self._later[0][0] - self._now()) / 1000))

    # -- when to look at what

    def _now(self) -> float:
        """The server's time (ms), as far as this process can tell without asking."""
        return time.monotonic() * 1000 + self._ahead

    def _note_clock(self, now_ms: int) -> None:
        if self._ahead and now_ms < self._now() - JUMP:
            log.warning("the server's clock went back; every schedule is looked at anew")
            self._open.update(dict.fromkeys(self._schedules))
            self._later.clear()
        self._ahead = now_ms - time.monotonic() * 1000

    def _wake(self) -> None:
        now = self._now() if self._ahead else 0.0
        while self._later and self._later[0][0] <= now:
            self._open[heapq.heappop(self._later)[1]] = None

    def _look(self, name: str, at_ms: int | None) -> None:
        """Look at a schedule again then; None: never."""
        del self._open[name]
        if at_ms is not None:
            heapq.heappush(self._later, (at_ms, name))

    # -- fires

    def _emit(self, standing: Mapping[str, Cursor], plans: Mapping[str, Plan], now_ms: int) -> None:
        """Offers the plans, schedule by schedule in turn, a script's worth of each at a time."""
        cursors = {name: standing[name].at_ms for name in plans}
        left = {name: found.decided for name, found in plans.items()}
        while left:
            calls = [self._call(name, cursors[name], left[name][:MOST_FIRES]) for name in left]
            replies = self._timetable.fire(calls)
            reach("fire.done")
            for call, reply in zip(calls, replies, strict=True):
                name = call.schedule_id
                left[name] = left[name][len(call.fires) :]
                if self._told(call, reply, now_ms):
                    cursors[name] = self._known[name]
                    if left[name]:
                        continue
                    after = plans[name].next_ms
                    if after is None or after > now_ms:  # else there is more, and it stays open
                        self._look(name, after)
                del left[name]
            reach("fire.told")

    def _call(self, name: str, cursor_ms: int, decided: Iterable[Decided]) -> FireCall:
        schedule = self._schedules[name]
        fires = tuple(
            (one, job(self._settings, schedule, one.at_ms) if one.fate is Fate.EMITTED else None)
            for one in decided
        )
        return FireCall(name, schedule.digest, cursor_ms, fires)

    def _told(self, call: FireCall, reply: FireReply, now_ms: int) -> bool:
        """Takes an answer in; True if all of the call was decided."""
        name = call.schedule_id
        if isinstance(reply, Unfit):
            if reply is Unfit.UNKNOWN:
                self._new.add(name)
            elif reply in (Unfit.HELD, Unfit.FUTURE):
                self._look(name, now_ms + AGAIN)
            return False  # a stale cursor: the schedule is still open, and is asked for again at once
        self._known[name] = reply.cursor_ms
        for (decided, _), fate in zip(call.fires, reply.fates, strict=False):
            if fate in (Fate.MISSED, Fate.COALESCED):
                log.warning("schedule %s: %s", name, told(decided))
        if reply.refusal is not None:
            self._trouble(name, f"its next fire waits, because {because(reply.refusal)}")
            self._look(name, now_ms + AGAIN)
            return False
        if name in self._troubled:
            self._troubled.remove(name)
            log.info("schedule %s: goes on", name)
        return True

    def _trouble(self, name: str, what: str) -> None:
        if name not in self._troubled:
            self._troubled.add(name)
            log.warning("schedule %s: %s", name, what)


def told(decided: Decided) -> str:
    """What became of fires that have no job, in a line."""
    span = utc_text(decided.at_ms)
    if decided.number > 1:
        span = f"{utc_text(decided.first_ms)} to {span} ({decided.number} fires)"
    into = decided.fate is Fate.COALESCED
    why = f"into {utc_text(int(decided.detail))}" if into else f"({decided.detail})"
    return f"{span} {decided.fate.value} {why}"


def because(refusal: Full | Closed | TooCostly) -> str:
    """Why a queue refuses."""
    if isinstance(refusal, Closed):
        return f"queue {refusal.queue} is closed"
    if isinstance(refusal, TooCostly):
        return (
            f"it needs {refusal.cost} of {refusal.resource}, which never holds more than {refusal.capacity}"
        )
    return f"{refusal.scope} is full"
