"""Fires: what becomes of a logical time of a schedule, and where a schedule stands. Instants are ms since 1970, UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Fate(Enum):
    """What became of a fire; marks, history and `tidegate_fires_total` use these words and no others."""

    EMITTED = "emitted"  #: its job was enqueued
    DUPLICATE = "duplicate"  #: its job was enqueued before, as the store or a worker remembers
    COALESCED = "coalesced"  #: a later fire stands for it
    MISSED = "missed"  #: no job was enqueued for it


class Missed(Enum):
    """Why a fire was missed, as the setting that said so."""

    CATCH_UP = "catch_up"  #: missed during an outage, and `skip` is the policy
    CATCH_UP_WINDOW = "catch_up_window"  #: too long ago
    CATCH_UP_MAX = "catch_up_max"  #: too many of them
    START_DEADLINE = "start_deadline"  #: its queue was full for too long
    DEADLINE = "deadline"  #: its job would have been over before it began


class Cursor(NamedTuple):
    """Where a schedule stands: everything up to `at_ms` is decided.

    full_since_ms: since when its queue has refused it (0 = it does not); full_until_ms: when it was refused last. A
    fire up to then was not missed by an outage: an emitter was there, and there was no room.
    """

    at_ms: int
    full_since_ms: int = 0
    full_until_ms: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """What shall become of a fire, or of a stretch of them (first_ms to at_ms, both included).

    number: fires of the stretch; where it was too long to count, what was counted. detail: a `Missed`, or the logical
    time (ms) of the fire that stands for these.
    """

    at_ms: int
    fate: Fate
    first_ms: int
    number: int = 1
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of a fire, as the store remembers it. lag_ms: from the logical time to the decision."""

    decided: Decided
    lag_ms: int


def instant_of(milliseconds: int) -> datetime:
    """The instant, aware, in UTC."""
    return _EPOCH + milliseconds * _MILLISECOND


def milliseconds_of(instant: datetime) -> int:
    """Inverse of `instant_of`; what is finer than a millisecond is cut off."""
    return (instant - _EPOCH) // _MILLISECOND


def utc_text(milliseconds: int) -> str:
    """The one spelling of a logical time that names a fire: UTC with milliseconds, `2026-03-08T01:00:00.000Z`."""
    return instant_of(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")
