"""Which dead letters are meant, and what sending them back would mean. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tidegate.store import Death, Snapshot


@dataclass(frozen=True, slots=True)
class Filter:
    """None: any. task: a pattern with `*` and `?`. died_of: the reason of the death. since_ms: of the last so many
    milliseconds (0: of all times)."""

    queue: str | None = None
    tenant: str | None = None
    task: str | None = None
    died_of: str | None = None
    since_ms: int = 0

    def admits(self, one: Death) -> bool:
        """True if this dead letter is meant; its time of death is looked at elsewhere."""
        return (
            self.queue in (None, one.queue)
            and self.tenant in (None, one.tenant)
            and self.died_of in (None, one.reason)
            and (self.task is None or fnmatchcase(one.task, self.task))
        )

    def as_dict(self) -> dict[str, Any]:
        """What was asked for, for the audit log."""
        said = {"queue": self.queue, "tenant": self.tenant, "task": self.task, "died_of": self.died_of}
        return {name: value for name, value in said.items() if value is not None} | (
            {"since": self.since_ms / 1000} if self.since_ms else {}
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """deaths: in the order in which they go. room: of each queue that is meant, jobs until it would be red."""

    wanted: Filter
    deaths: tuple[Death, ...]
    expired: int
    room: Mapping[str, int]

    def counts(self, field: str) -> Counter[str]:
        """How many for each value of a field (`tenant`, `queue`, `task`, `reason`)."""
        return Counter(getattr(one, field) for one in self.deaths)

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        return {
            "matched": len(self.deaths),
            "expired": self.expired,
            "room": dict(self.room),
            **{f"by_{name}": dict(self.counts(name)) for name in ("tenant", "queue", "task", "reason")},
        }


def plan_of(deaths: Iterable[Death], wanted: Filter, now: Snapshot) -> Plan:
    """All that are meant, tenants in turn."""
    found = tuple(in_turn(one for one in deaths if wanted.admits(one)))
    queues = sorted({one.queue for one in found})
    room = {name: red_at(now.queues[name].limit) - now.queues[name].depth for name in queues}
    return Plan(
        wanted,
        found,
        sum(0 < one.deadline_ms <= now.now_ms for one in found),
        {name: max(0, jobs) for name, jobs in room.items()},
    )


def red_at(limit: int) -> int:
    """The most jobs of a queue that is not red: below 90 % of its limit."""
    return -(-limit * 9 // 10) - 1


def in_turn(deaths: Iterable[Death]) -> Iterable[Death]:
    """One of each tenant, then the next of each: the oldest first, and no tenant waits for all of another's."""
    lines: dict[str, list[Death]] = {}
    for one in deaths:
        lines.setdefault(one.tenant, []).append(one)
    for number in range(max(map(len, lines.values()), default=0)):
        for line in lines.values():
            if number < len(line):
                yield line[number]
