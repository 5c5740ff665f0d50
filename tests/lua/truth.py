"""What must be true of a fleet's keys between any two commands, found by counting everything again from the jobs.

Nothing here trusts a counter, an index or the model: the stored records are the only source. Each check gives
sentences; `complaints` gives all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tidegate.store.keyspace import KEYS, KeyKind

from .dump import Dump, Record

UNFINISHED = "WDRFT"
#: "job:" for `job:*`, "meta" for itself
_KINDS = {kind.pattern.removesuffix("*"): kind for kind in KEYS}


def complaints(dump: Dump) -> list[str]:
    """Everything that is wrong; empty for a sound fleet."""
    checks = (keys, counters, index, places, instants, leases, turns, wakes, schedules)
    return [line for check in checks for line in check(dump)]


def differs(what: str, stored: object, counted: object) -> Iterator[str]:
    if stored != counted:
        yield f"{what}: stored {stored}, counted {counted}"


def keys(dump: Dump) -> Iterator[str]:
    """Each key is of a declared kind; one that may live for ever by its declaration is the only one without an end."""
    for name in dump:
        kind = kind_of(name)
        if kind is None:
            yield f"{name}: of no declared kind"
        elif kind.lifetime.startswith("ttl") and dump.ttl[name] == -1 and not name.startswith("key:"):
            yield f"{name}: its kind has a TTL, it has none"


def kind_of(name: str) -> KeyKind | None:
    """The declaration that a key (without its prefix) falls under."""
    head, colon, _ = name.partition(":")
    return _KINDS.get(head + colon)


def counters(dump: Dump) -> Iterator[str]:
    states: defaultdict[str, Counter[str]] = defaultdict(Counter)
    tenants: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for job in dump.jobs.values():
        states[job.queue][job.state] += 1
        if job.state in UNFINISHED:
            tenants[job.queue][job.tenant] += 1
    for q in dump.get("queues", set()) | set(states):
        book = dump.book(q)
        counted = {s: n for s, n in states[q].items() if s in "DFXRT"}
        yield from differs(f"states of {q}", {s: n for s, n in book.states.items() if n}, counted)
        unfinished = sum(n for s, n in states[q].items() if s in UNFINISHED)
        yield from differs(f"in - out of {q}", book.taken - book.gone, unfinished)
        stored = {t: n for t, (n, _) in book.tenants.items() if n}
        yield from differs(f"tenants of {q}", stored, dict(tenants[q]))
    yield from differs(
        "failed", set(dump.get("failed", {})), {j.id for j in dump.jobs.values() if j.state == "F"}
    )
    yield from differs("dlq", set(dump.get("dlq", {})), {j.id for j in dump.jobs.values() if j.state == "X"})


def index(dump: Dump) -> Iterator[str]:
    """Names, keys and errors belong to jobs."""
    yield from differs("ix", dump.below("ix"), {job.name: job.id for job in dump.jobs.values()})
    for job in dump.jobs.values():
        if job.state in "FX" and f"err:{job.id}" not in dump:
            yield f"job {job.id} is {job.state} without a reason"
        if job.key == "-":
            continue
        if f"key:{job.key}" not in dump:
            yield f"job {job.id}: its key is gone"
        elif not dump[f"key:{job.key}"].startswith(f"{job.name} "):
            if job.state in UNFINISHED:
                yield f"job {job.id} is {job.state} and its key is another's"
        elif (dump.ttl[f"key:{job.key}"] == -1) != (job.state in UNFINISHED):
            yield f"job {job.id} is {job.state} and its key has TTL {dump.ttl[f'key:{job.key}']}"
    live = {job.key for job in dump.jobs.values()}
    for key in dump.below("key"):
        if key not in live and dump.ttl[f"key:{key}"] == -1:
            yield f"key:{key} outlives its job for ever"
    for kind in ("err", "tries"):
        for job_id in dump.below(kind):
            if job_id not in dump.jobs:
                yield f"{kind}:{job_id} belongs to no job"
    for job_id in dump.get("untold", {}):
        if job_id in dump.jobs and dump.jobs[job_id].state != "X":
            yield f"job {job_id} is to be told of and not dead"


def places(dump: Dump) -> Iterator[str]:
    """A waiting job is in its lane and nowhere else; a lane is in exactly one of rl and wl, with its head's score.

    In rl the first lane may still have the score of a job that was served from it; old is right to half a second.
    """
    lanes: defaultdict[str, list[Record]] = defaultdict(list)
    for job in dump.jobs.values():
        if job.state == "W":
            lanes[job.lane].append(job)
    stored = dump.below("lane")
    yield from differs("lanes", {n: dict(z) for n, z in stored.items()}, _scores(lanes))
    yield from differs("lm", set(dump.below("lm")), set(lanes))
    standing: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for place, members in (*_prefixed(dump, "rl:"), *_prefixed(dump, "wl:")):
        for name, score in members.items():
            standing[name].append((place, score))
    oldest: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, jobs in lanes.items():
        job, at = min(jobs, key=lambda job: (job.score, job.id)), dump.get(f"lm:{name}", {}).get("at", "")
        here = f"{job.queue}:{job.tenant}"
        place = f"rl:{here}" if at == "rl" else f"wl:{at}:{here}"
        stands = standing.pop(name, [])
        late = at == "rl" and stands and stands[0][1] < job.score and _is_first(dump[place], name)
        yield from differs(
            f"lane {name} stands at", stands, [(place, stands[0][1] if late else float(job.score))]
        )
        oldest[job.queue][name] = job.score // 500
        resources = dump.get(f"lm:{name}", {}).get("res", "").split(" ")
        yield from differs(f"lane {name} res", tuple(resources), job.resources)
    yield from (f"{name} stands at {where} without jobs" for name, where in standing.items())
    halves = {q: {name: score // 500 for name, score in z.items()} for q, z in dump.below("old").items()}
    yield from differs("old", halves, dict(oldest))


def _is_first(lanes: dict[str, float], name: str) -> bool:
    return min(lanes, key=lambda other: (lanes[other], other)) == name


def _scores(lanes: dict[str, list[Record]]) -> dict[str, dict[str, float]]:
    return {name: {job.id: float(job.score) for job in jobs} for name, jobs in lanes.items()}


def _prefixed(dump: Dump, prefix: str) -> Iterable[tuple[str, dict[str, float]]]:
    return [(name, value) for name, value in dump.items() if name.startswith(prefix)]


def instants(dump: Dump) -> Iterator[str]:
    wanted = {job.id: float(job.due) for job in dump.jobs.values() if job.due}
    yield from differs("due", dump.get("due", {}), wanted)


def leases(dump: Dump) -> Iterator[str]:
    """A running job has its lease and occupies each of its resources; nothing else does."""
    running = [job for job in dump.jobs.values() if job.state == "R"]
    yield from differs("leases", set(dump.get("leases", {})), {job.lease for job in running})
    users: defaultdict[str, set[str]] = defaultdict(set)
    for job in running:
        for resource in job.resources[1:]:  # a queue counts its running jobs
            users[resource].add(job.lease)
    yield from differs("use", dump.below("use"), dict(users))
    fences = [job.fence for job in dump.jobs.values() if job.fence]
    if len(fences) != len(set(fences)):
        yield "a fence is used twice"


def turns(dump: Dump) -> Iterator[str]:
    """Tenants with waiting or running jobs have a pass; one with a ready lane is in ready:q or parked, never both."""
    for q in dump.get("queues", set()):
        ready, passes = dump.get(f"ready:{q}", {}), dump.get(f"pass:{q}", {})
        active = {j.tenant for j in dump.jobs.values() if j.queue == q and j.state in "WR"}
        served = {member[1:] for member in ready if member[0] == "~"}
        yield from (f"tenant {t} of {q} has no pass" for t in active - set(passes) - served)
        yield from (f"tenant {t} of {q} has two passes" for t in served & set(passes))
        with_lanes = {t for t in active if f"rl:{q}:{t}" in dump}
        parked = {
            name.removeprefix("wq:tenant:")
            for name, queues in _prefixed_sets(dump, "wq:tenant:")
            if q in queues
        }
        yield from differs(f"tenants of {q} with ready lanes", served | parked, with_lanes)
        yield from (f"tenant {t} of {q} is ready and parked" for t in served & parked)
        groups = {member[1:] for member in ready if member[0] == "!"}
        yield from (f"open group {r} of {q} without lanes" for r in groups if f"wt:{r}:{q}" not in dump)


def _prefixed_sets(dump: Dump, prefix: str) -> Iterable[tuple[str, set[str]]]:
    return [(name, value) for name, value in dump.items() if name.startswith(prefix)]


def wakes(dump: Dump) -> Iterator[str]:
    """wt, wq and blocked follow from the lanes that are parked."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for name in dump.below("wl"):
        group, _, tenant = name.rpartition(":")
        groups[group].add(tenant)
    yield from differs("wt", {n: set(z) for n, z in dump.below("wt").items()}, dict(groups))
    queues: defaultdict[str, set[str]] = defaultdict(set)
    for group in groups:
        resource, _, q = group.rpartition(":")
        queues[resource].add(q)
    stored = {r: v for r, v in dump.below("wq").items() if r.partition(":")[0] not in ("tenant", "queue")}
    yield from differs("wq", stored, dict(queues))
    yield from differs("blocked", dump.get("blocked", set()), set(dump.below("wq")))


def schedules(dump: Dump) -> Iterator[str]:
    """Marks belong to a schedule, none is at or below its watermark, and what they stand for was counted."""
    counted: Counter[str] = Counter()
    for field, number in dump.get("fates", {}).items():
        counted[field.partition(" ")[0]] += int(number)
    known = {name: list(map(int, text.split(" ")[:4])) for name, text in dump.get("sched", {}).items()}
    for name, marks in dump.below("fires").items():
        if name not in known:
            yield f"fires:{name} belongs to no schedule"
            continue
        cursor, watermark, *_ = known[name]
        if watermark > cursor:
            yield f"schedule {name}: watermark {watermark} beyond its cursor {cursor}"
        yield from (
            f"mark {mark!r} of {name} at its watermark" for mark, at in marks.items() if at <= watermark
        )
        if counted[name] < sum(int(mark.split(" ")[2]) for mark in marks):
            yield f"schedule {name}: {counted[name]} fires counted, fewer than its marks say"
