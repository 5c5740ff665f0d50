"""The rules about time and limits: what could start now, and whether somebody will look at it in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from .dump import Dump, Record

TOKEN = 1_000_000


class Limits:
    """The limits of a fleet as its store has them, and what they allow at the store's own instant."""

    def __init__(self, dump: Dump) -> None:
        self.dump = dump
        self.now = int(dump["meta"]["clock"])

    def limit(self, resource: str) -> list[str]:
        """weight conc n d burst depth paused till closed"""
        table = self.dump.get("lim", {})
        default = f"{resource.partition(':')[0]}:*"
        found: str = table.get(resource) or table.get(default) or "1 -1 0 1 0 -1 0 0 0"
        return found.split(" ")

    def tokens(self, resource: str) -> Fraction:
        """Micro-tokens in a bucket now, exactly."""
        _, _, n, d, burst, *_ = self.limit(resource)
        stored = self.dump.get(f"bucket:{resource}")
        tokens, stamp, rest = (
            map(int, stored.split(" ")) if stored else (0, int(self.dump["meta"]["start"]), 0)
        )
        gained = Fraction(max(0, self.now - stamp) * int(n) + rest, int(d))
        return min(Fraction(burst), tokens + gained)

    def in_use(self, resource: str) -> int:
        """Attempts that run and occupy it."""
        return sum(job.state == "R" and resource in job.resources for job in self.dump.jobs.values())

    def admits(self, resource: str) -> bool:
        _, conc, n, _, _, _, paused, till, _ = self.limit(resource)
        if paused == "1" or conc == "0" or int(till) > self.now:
            return False
        if 0 < int(conc) <= self.in_use(resource):
            return False
        return int(n) == 0 or self.tokens(resource) >= TOKEN

    def startable(self, queues: Iterable[str]) -> list[Record]:
        """First jobs of lanes that every resource of theirs lets in."""
        heads: dict[str, Record] = {}
        for job in self.dump.jobs.values():
            if job.state == "W" and job.queue in queues:
                other = heads.get(job.lane)
                if other is None or (job.score, job.id) < (other.score, other.id):
                    heads[job.lane] = job
        return [job for job in heads.values() if all(map(self.admits, job.resources))]

    def forgotten(self) -> Iterator[str]:
        """Waiters of a resource that lets somebody in, though nobody is told: no open group, no timer that is due."""
        timers = self.dump.get("timers", {})
        for group in self.dump.below("wt"):
            resource, _, q = group.rpartition(":")
            told = f"!{resource}" in self.dump.get(f"ready:{q}", {})
            if not told and self.admits(resource) and timers.get(resource, self.now + 1) > self.now:
                yield f"{resource} lets a waiter of {q} in and its group is closed"
        for name in self.dump.below("wq"):
            kind = name.partition(":")[0]
            if kind == "tenant" and self.admits(name) and timers.get(name, self.now + 1) > self.now:
                yield f"{name} is parked and could start"

    def exceeded(self) -> Iterator[str]:
        """Buckets below nothing or above their burst."""
        for resource in self.dump.below("bucket"):
            tokens = self.tokens(resource)
            if not 0 <= tokens <= int(self.limit(resource)[4]):
                yield f"bucket {resource} holds {tokens} micro-tokens"


def too_many(starts: list[int], refunds: list[int], burst: Fraction, rate: Fraction) -> str:
    """A window in which more jobs started than burst + rate x time allows; "" if there is none.

    starts, refunds: instants in ms, in order; burst: jobs; rate: jobs per ms.
    """
    for i, begin in enumerate(starts):
        for j in range(i, len(starts)):
            end = starts[j]
            back = sum(begin <= at <= end for at in refunds)
            if j - i + 1 - back > burst + rate * (end - begin):
                return f"{j - i + 1} starts and {back} refunds in {end - begin} ms"
    return ""
