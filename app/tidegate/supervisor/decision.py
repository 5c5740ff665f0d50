"""What becomes of a part whose process has ended. Pure: a history, a status and a time in, a decision out."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TypeAlias

#: seconds until a new start: the first, doubled with each short life, never more than the last
FIRST, MOST = 1.0, 30.0
#: seconds after which a life was no failed start
SETTLED = 60.0
#: exit statuses that another start cannot change: usage and configuration
FATAL = frozenset({2, 4})

_MEANING = {2: "usage", 3: "store unreachable", 4: "configuration"}


@dataclass(frozen=True, slots=True)
class History:
    """Earlier lives of a part. short: how many in a row ended before SETTLED; settled: one has reached it."""

    short: int = 0
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Start it again at `at` (monotonic seconds), with this history."""

    at: float
    history: History


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It cannot run; everything ends with this exit code."""

    exit_code: int


@dataclass(frozen=True, slots=True)
class Done:
    """It was to end."""


Decision: TypeAlias = Restart | GiveUp | Done


def decide(history: History, status: int, *, started: float, now: float, stopping: bool) -> Decision:
    """status: exit status, negative for a signal. started, now: monotonic seconds.

    A status of 2 or 4 ends everything only as long as the part has never run well: a settings file that is saved
    half-written must not end a fleet that works. An unreachable store (3) and an address that is taken (1) may pass.
    """
    if stopping:
        return Done()
    well = now - started >= SETTLED
    settled = history.settled or well
    if status in FATAL and not settled:
        return GiveUp(status)
    short = 0 if well else history.short
    wait = min(MOST, FIRST * 2.0 ** min(short, 16))
    return Restart(now + wait, History(short + 1, settled))


def reason(status: int) -> str:
    """An exit status in words: `exit status 3 (store unreachable)`, `killed by SIGKILL`."""
    if status >= 0:
        meaning = _MEANING.get(status)
        return f"exit status {status} ({meaning})" if meaning else f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
