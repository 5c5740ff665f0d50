"""What a caller may say about a job, wherever it does: keywords of `enqueue` and `context`, options, headers.

Pure: `now_ms` (the producer's clock) turns "in ten minutes" into an instant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from tidegate.config.quantity import parse_duration
from tidegate.domain.errors import InvalidJob
from tidegate.domain.identity import Key, key_text
from tidegate.domain.names import checked_name
from tidegate.domain.priority import parse_priority, word_of

#: seconds as a number, "250ms", "30s", "10m", "2h", "3d", or a timedelta
Duration = float | str | timedelta
#: an instant as a datetime with a zone, or as ISO 8601 text with an offset; or a Duration from now
Instant = datetime | Duration

_DURATION = 'seconds above 0 as a number, a timedelta, or text such as "30s", "10m", "2h"'
_INSTANT = "a datetime with a zone, ISO 8601 text with an offset, or a duration from now"


class Identity(TypedDict, total=False):
    """The words about whose job it is and how urgent it is; the same wherever they are said."""

    tenant: str
    operation_id: str
    idempotency_key: Key
    priority: str | int
    queue_timeout: Duration
    deadline: Instant
    resources: Sequence[str]
    cost: Mapping[str, int]


#: their names as headers and as options of `apply_async`
NAMES: Final = frozenset(Identity.__annotations__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Checked words; None = not said. Times in milliseconds, `deadline` since 1970."""

    tenant: str | None = None
    operation_id: str | None = None
    idempotency_key: str | None = None
    priority: str | None = None
    queue_timeout: int | None = None
    deadline: int | None = None
    resources: tuple[str, ...] | None = None
    cost: Mapping[str, int] | None = None

    @classmethod
    def read(cls, words: Mapping[str, Any], now_ms: int, *, amqp: bool = False) -> Said:
        """Check `words`; names it does not know are left alone, None counts as not said. Raises InvalidJob."""
        names = NAMES & words.keys()
        found = {name: words[name] for name in names if words[name] is not None} if names else None
        if not found:
            return NOTHING
        for name in ("tenant", "operation_id"):
            if name in found:
                checked_name(found[name], name)
        if "idempotency_key" in found:
            found["idempotency_key"] = key_text(found["idempotency_key"])
        if "priority" in found:
            found["priority"] = word_of(parse_priority(found["priority"], amqp=amqp))
        if "queue_timeout" in found:
            found["queue_timeout"] = duration_ms(found["queue_timeout"], "queue_timeout")
        if "deadline" in found:
            found["deadline"] = instant_ms(found["deadline"], "deadline", now_ms)
        if "resources" in found:
            found["resources"] = _resources(found["resources"])
        if "cost" in found:
            found["cost"] = _cost(found["cost"])
        return cls(**found)

    def over(self, other: Said) -> Said:
        """These words, and `other`'s where these say nothing."""
        if other is NOTHING or self is NOTHING:
            return other if self is NOTHING else self
        missing = {
            item.name: getattr(other, item.name) for item in fields(self) if getattr(self, item.name) is None
        }
        return replace(self, **missing)


#: nobody said anything
NOTHING: Final = Said()


def duration_ms(value: object, where: str) -> int:
    """A duration in milliseconds, at least 1. Raises InvalidJob."""
    seconds = _seconds(value)
    if seconds is None or seconds <= 0:
        raise InvalidJob(repr(value), where, _DURATION)
    return max(round(seconds * 1000), 1)


def instant_ms(value: object, where: str, now_ms: int) -> int:
    """An instant in milliseconds since 1970. Raises InvalidJob, also for a datetime without a zone."""
    when = value
    if isinstance(value, str) and _seconds(value) is None:
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidJob(repr(value), where, _INSTANT) from None
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise InvalidJob(f"{value!r}, which has no zone", where, _INSTANT)
        return math.floor(when.timestamp() * 1000)
    seconds = _seconds(when)
    if seconds is None or seconds < 0:
        raise InvalidJob(repr(value), where, _INSTANT)
    return now_ms + round(seconds * 1000)


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return parse_duration(value)
    except ValueError:
        return None


def _resources(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidJob(repr(value), "resources", "a list of names")
    return tuple(checked_name(item, f"resources[{index}]") for index, item in enumerate(value))


def _cost(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise InvalidJob(repr(value), "cost", 'a mapping such as {"tokens": 1200}')
    for name, units in value.items():
        checked_name(name, "cost")
        if isinstance(units, bool) or not isinstance(units, int) or units < 0:
            raise InvalidJob(repr(units), f"cost.{name}", "a whole number of units, not below 0")
    return dict(value)
