"""The verdict on a demo: the ledger against what the store says at the end. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import ceil, inf
from typing import Any

from tidegate.demo.ledger import Entry


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt, from its first line to its last: in seconds of the ledger's clock, as far as it surely lived."""

    job: str
    tenant: str
    attempt: int
    begin: float
    end: float
    finished: bool


@dataclass(frozen=True, slots=True)
class Store:
    """What the store says at the end. dead, succeeded: task ids; unfinished: jobs of any other state."""

    succeeded: Collection[str]
    dead: Collection[str]
    unfinished: int
    replayed: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Counts of jobs, unless said otherwise; times in seconds.

    lost: accepted, and neither finished by the ledger's word nor a dead letter by the store's; or the two do not agree.
    limit_violations: attempts that began while their tenant was at its limit. dead: those still dead at the end.
    """

    submitted: int
    accepted: int
    duplicates: int
    rejected: int
    succeeded: int
    dead: int
    replayed: int
    lost: int
    overlapping_attempts: int
    limit_violations: int
    fires: int
    fires_duplicated: int
    fires_missed: int
    peak_concurrency: Mapping[str, int]
    limit: Mapping[str, int]
    wait_p95: Mapping[str, float]
    wait_p95_idle: Mapping[str, float]
    seconds: float

    @property
    def holds(self) -> bool:
        """True if nothing was lost, overlapped, violated, missed or fired twice."""
        wrong = (self.lost, self.overlapping_attempts, self.limit_violations)
        return not any((*wrong, self.fires_duplicated, self.fires_missed))

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        return asdict(self)


def judge(
    entries: Sequence[Entry],
    store: Store,
    limit: Mapping[str, int],
    fires_due: Collection[str],
    idle_until: float,
    seconds: float,
) -> Verdict:
    """limit: the highest concurrency of each tenant. fires_due: logical times that must have fired, as the tasks were
    told them. idle_until: what was accepted before that instant had the fleet for itself."""
    spans = attempts(entries)
    accepted = {entry.job: entry for entry in entries if entry.kind == "accepted"}
    ended = {span.job for span in spans if span.finished}
    fired = fires(entries)
    kinds = [entry.kind for entry in entries]
    waits = _waits(accepted.values(), spans)
    return Verdict(
        submitted=sum(kinds.count(kind) for kind in ("accepted", "duplicate", "rejected")),
        accepted=len(accepted),
        duplicates=kinds.count("duplicate"),
        rejected=kinds.count("rejected"),
        succeeded=len(ended & accepted.keys()),
        dead=len(accepted.keys() & set(store.dead)),
        replayed=store.replayed,
        lost=len(_lost(set(accepted), ended, store)) + store.unfinished,
        overlapping_attempts=overlaps(spans),
        limit_violations=sum(beyond(spans, tenant, most) for tenant, most in limit.items()),
        fires=len(fired),
        fires_duplicated=sum(number - 1 for number in fired.values()),
        fires_missed=len(set(fires_due) - fired.keys()),
        peak_concurrency={tenant: peak(spans, tenant) for tenant in limit},
        limit=dict(limit),
        wait_p95={t: p95(w for at, w in waits[t] if at >= idle_until) for t in limit},
        wait_p95_idle={t: p95(w for at, w in waits[t] if at < idle_until) for t in limit},
        seconds=round(seconds, 1),
    )


def attempts(entries: Iterable[Entry]) -> list[Span]:
    """Every attempt. One without a last line ended with its process, if that is known to have been killed."""
    begun: dict[tuple[str, int], Entry] = {}
    last: dict[tuple[str, int], Entry] = {}
    killed: dict[int, float] = {}
    for entry in entries:
        if entry.kind == "begin":
            begun[entry.job, entry.attempt] = entry
        elif entry.kind in ("end", "failed"):
            last[entry.job, entry.attempt] = entry
        elif entry.kind == "killed":
            killed.update(dict.fromkeys(entry.info["pids"], entry.at))
    found = []
    for key, begin in begun.items():
        end = last.get(key)
        until = end.at if end else max(begin.at, killed.get(begin.pid, inf))
        finished = end is not None and end.kind == "end"
        found.append(Span(begin.job, begin.tenant, begin.attempt, begin.at, until, finished))
    return found


def fires(entries: Iterable[Entry]) -> Counter[str]:
    """Logical time of each fire and how many jobs it became: other attempts of one job are no other job."""
    begun = Counter(
        (str(entry.info["fire"]), entry.job, entry.attempt)
        for entry in entries
        if entry.kind == "begin" and "fire" in entry.info
    )
    jobs: dict[tuple[str, str], int] = defaultdict(int)
    for (fire, job, _), times in begun.items():
        jobs[fire, job] = max(times, jobs[fire, job])
    found: Counter[str] = Counter()
    for (fire, _), times in jobs.items():
        found[fire] += times
    return found


def overlaps(spans: Iterable[Span]) -> int:
    """Pairs of attempts of one job that lived at once."""
    jobs: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        jobs[span.job].append(span)
    return sum(
        max(one.begin, other.begin) < min(one.end, other.end)
        for several in jobs.values()
        for one, other in combinations(several, 2)
    )


def beyond(spans: Iterable[Span], tenant: str, limit: int) -> int:
    """Attempts of the tenant that began while so many of them already lived."""
    return sum(level > limit for level in _levels(spans, tenant))


def peak(spans: Iterable[Span], tenant: str) -> int:
    """The most attempts of the tenant that lived at once."""
    return max(_levels(spans, tenant), default=0)


def _levels(spans: Iterable[Span], tenant: str) -> list[int]:
    """How many attempts of the tenant live at each of their beginnings; at one instant ends come first."""
    steps = sorted(step for s in spans if s.tenant == tenant for step in ((s.begin, 1), (s.end, -1)))
    level, found = 0, []
    for _, change in steps:
        level += change
        if change > 0:
            found.append(level)
    return found


def p95(values: Iterable[float]) -> float:
    """The 95th percentile (nearest rank), to the millisecond; 0 for none."""
    ordered = sorted(values)
    return round(ordered[ceil(0.95 * len(ordered)) - 1], 3) if ordered else 0.0


def _waits(accepted: Iterable[Entry], spans: Iterable[Span]) -> dict[str, list[tuple[float, float]]]:
    """Of each tenant: (when a job was sent, how long until its first attempt began)."""
    first: dict[str, float] = {}
    for span in spans:
        first[span.job] = min(span.begin, first.get(span.job, inf))
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for entry in accepted:
        if entry.job in first:
            found[entry.tenant].append((entry.at, max(0.0, first[entry.job] - entry.at)))
    return found


def _lost(accepted: Collection[str], ended: Collection[str], store: Store) -> set[str]:
    """Jobs about which ledger and store do not agree that they are finished, or dead."""
    told = set(store.succeeded)
    return {job for job in accepted if job not in store.dead and not (job in ended and job in told)}
