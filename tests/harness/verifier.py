"""The verdict on a run, from the ledger alone: who overlapped, what was lost, what ran twice.

Nothing here asks Tidegate. An attempt lives from its `begin` to its `end`; one without an end lives until its process
died (the ledger's witness recorded between which two instants), or, if it is not known to be dead, for ever. Time in
which its process was known to stand still (SIGSTOP) is not life: a frozen process does nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf

from .ledger import Entry
from .procfs import ProcessId


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of CLOCK_BOOTTIME."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try. certain: when it surely lived; possible: when it may have (longer only if it died without an end)."""

    id: str
    job: str
    process: ProcessId
    worker: ProcessId
    begin: float
    end: float | None
    certain: tuple[Span, ...]
    possible: tuple[Span, ...]
    info: dict[str, object]

    @property
    def finished(self) -> bool:
        return self.end is not None

    def group(self, by: str | None) -> str:
        return "" if by is None else str(self.info.get(by, ""))


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two attempts of one job alive at once. since_thaw: seconds from the last SIGCONT of either process to the first
    common instant, None if neither was ever frozen before it.
    """

    job: str
    first: Attempt
    second: Attempt
    seconds: float
    begin: float
    since_thaw: float | None


@dataclass(frozen=True, slots=True)
class ServerKill:
    lost_after: float
    killed_at: float


class Verifier:
    """Judge a ledger's entries (in any order)."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.at)
        self._deaths = _deaths(self._entries)
        self._frozen = _frozen(self._entries)
        self.attempts = self._read_attempts()
        self.accepted = frozenset(entry.job for entry in self._entries if entry.kind == "accepted")
        self.refused = frozenset(entry.job for entry in self._entries if entry.kind == "refused")
        self.server_kills = [
            ServerKill(entry.info["lost_after"], entry.info["killed_at"])
            for entry in self._entries
            if entry.kind == "server_kill"
        ]

    def by_job(self) -> dict[str, list[Attempt]]:
        """Attempts of each job, oldest first."""
        found: dict[str, list[Attempt]] = defaultdict(list)
        for attempt in self.attempts:
            found[attempt.job].append(attempt)
        return dict(found)

    def overlaps(self, *, possible: bool = False) -> list[Overlap]:
        """Attempts of one job that lived at once. With `possible` also those that only may have (see Attempt)."""
        return [
            overlap
            for attempts in self.by_job().values()
            for first, second in combinations(attempts, 2)
            if (overlap := self._overlap(first, second, possible)) is not None
        ]

    def lost(self, accepted: Iterable[str] | None = None) -> set[str]:
        """Jobs that a producer was told were in and that no attempt has finished."""
        finished = {attempt.job for attempt in self.attempts if attempt.finished}
        return set(self.accepted if accepted is None else accepted) - finished

    def unwanted(self) -> set[str]:
        """Jobs that a producer was told were refused and that ran all the same."""
        return {attempt.job for attempt in self.attempts} & (self.refused - self.accepted)

    def duplicates(self) -> dict[str, list[Attempt]]:
        """Jobs that were finished more than once, with those attempts."""
        found = {job: [one for one in attempts if one.finished] for job, attempts in self.by_job().items()}
        return {job: attempts for job, attempts in found.items() if len(attempts) > 1}

    def reruns(self) -> dict[str, list[Attempt]]:
        """Jobs that were begun more than once, with all attempts."""
        return {job: attempts for job, attempts in self.by_job().items() if len(attempts) > 1}

    def unexplained_duplicates(self) -> dict[str, list[Attempt]]:
        """Duplicates without a (server kill, process kill) pair to blame.

        The one allowed kind: the attempt ended, the server forgot that end (it came after `lost_after` of a kill and
        before the kill), and the worker that remembered it died before the next attempt began.
        """
        found = {}
        for job, attempts in self.duplicates().items():
            if not all(self._explained(first, second) for first, second in pairwise(attempts)):
                found[job] = attempts
        return found

    def peak_concurrency(self, by: str | None = None) -> dict[str, int]:
        """The most attempts surely alive at one instant, for each value of `info[by]` (one group "" without)."""
        steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for attempt in self.attempts:
            for span in attempt.certain:
                steps[attempt.group(by)] += [(span.begin, 1), (span.end, -1)]
        return {group: _peak(sorted(changes)) for group, changes in steps.items()}

    def rate_windows(self, seconds: float, by: str | None = None) -> dict[str, int]:
        """The most attempts that began within any window of this length, [t, t + seconds), for each group."""
        return {group: _fullest(times, seconds) for group, times in self._begins(by).items()}

    def worst_burst(self, rate: float, by: str | None = None) -> dict[str, float]:
        """The smallest burst with which a bucket of `rate` per second allows every begin (windows of all lengths)."""
        return {group: _burst(times, rate) for group, times in self._begins(by).items()}

    def _begins(self, by: str | None) -> dict[str, list[float]]:
        found: dict[str, list[float]] = defaultdict(list)
        for attempt in self.attempts:
            found[attempt.group(by)].append(attempt.begin)
        return {group: sorted(times) for group, times in found.items()}

    def _read_attempts(self) -> list[Attempt]:
        ends = {entry.attempt: entry.at for entry in self._entries if entry.kind == "end"}
        found = []
        for entry in self._entries:
            if entry.kind != "begin":
                continue
            end = ends.get(entry.attempt)
            death = self._deaths.get(entry.process, Span(inf, inf))
            frozen = self._frozen.get(entry.process, [])
            found.append(
                Attempt(
                    id=entry.attempt,
                    job=entry.job,
                    process=entry.process,
                    worker=entry.worker,
                    begin=entry.at,
                    end=end,
                    certain=_without(Span(entry.at, death.begin if end is None else end), frozen),
                    possible=_without(Span(entry.at, death.end if end is None else end), frozen),
                    info=dict(entry.info),
                )
            )
        return found

    def _overlap(self, first: Attempt, second: Attempt, possible: bool) -> Overlap | None:
        ours, theirs = (first.possible, second.possible) if possible else (first.certain, second.certain)
        common = [
            Span(max(one.begin, other.begin), min(one.end, other.end))
            for one in ours
            for other in theirs
            if max(one.begin, other.begin) < min(one.end, other.end)
        ]
        if not common:
            return None
        begin = min(span.begin for span in common)
        seconds = sum(span.end - span.begin for span in common)
        thaws = [
            span.end
            for process in (first.process, second.process)
            for span in self._frozen.get(process, [])
            if span.end <= begin
        ]
        return Overlap(first.job, first, second, seconds, begin, begin - max(thaws) if thaws else None)

    def _explained(self, first: Attempt, second: Attempt) -> bool:
        assert first.end is not None
        forgotten = any(kill.lost_after <= first.end <= kill.killed_at for kill in self.server_kills)
        death = self._deaths.get(first.worker, Span(inf, inf))  # its memory would have told the store
        return forgotten and first.end <= death.end and death.begin <= second.begin


def _process(entry: Entry) -> ProcessId:
    return ProcessId(entry.info["pid"], entry.info["start"])


def _deaths(entries: Sequence[Entry]) -> dict[ProcessId, Span]:
    """When each process died: after `begin`, before `end`. Two reports of one death narrow it."""
    found: dict[ProcessId, Span] = {}
    for entry in entries:
        if entry.kind == "death":
            known = found.get(_process(entry), Span(-inf, inf))
            found[_process(entry)] = Span(
                max(known.begin, entry.info["after"]), min(known.end, entry.info["before"])
            )
    return found


def _frozen(entries: Sequence[Entry]) -> dict[ProcessId, list[Span]]:
    """When each process surely stood still: from after SIGSTOP took effect to before SIGCONT was sent."""
    found: dict[ProcessId, list[Span]] = defaultdict(list)
    since: dict[ProcessId, float] = {}
    for entry in entries:
        if entry.kind == "frozen":
            since.setdefault(_process(entry), entry.info["before"])
        elif entry.kind == "thawed" and _process(entry) in since:
            found[_process(entry)].append(Span(since.pop(_process(entry)), entry.info["after"]))
    for process, begin in since.items():
        found[process].append(Span(begin, inf))
    return dict(found)


def _without(life: Span, holes: Sequence[Span]) -> tuple[Span, ...]:
    pieces, begin = [], life.begin
    for hole in sorted(holes, key=lambda span: span.begin):
        if hole.begin < life.end and hole.end > begin:
            pieces.append(Span(begin, hole.begin))
            begin = hole.end
    pieces.append(Span(begin, life.end))
    return tuple(piece for piece in pieces if piece.begin < piece.end)


def _peak(changes: Sequence[tuple[float, int]]) -> int:
    now = most = 0
    for _, change in changes:  # at one instant ends sort before begins: touching is not overlapping
        now += change
        most = max(most, now)
    return most


def _fullest(times: Sequence[float], seconds: float) -> int:
    most = first = 0
    for last, at in enumerate(times):
        while times[first] <= at - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def _burst(times: Sequence[float], rate: float) -> float:
    # Over i <= j the worst of (j - i + 1) - rate * (t_j - t_i); the best i for every j is a running minimum.
    worst, least = 0.0, inf
    for index, at in enumerate(times):
        level = index - rate * at
        least = min(least, level)
        worst = max(worst, level - least + 1)
    return worst
