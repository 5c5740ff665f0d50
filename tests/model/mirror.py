"""The model and a dump of the store side by side, in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.lua.dump import Dump

from .reference import Model


def differences(model: Model, dump: Dump) -> list[str]:
    """One sentence for each thing of which the two do not say the same."""
    return [line for part in (_jobs, _lanes, _turns, _marks) for line in part(model, dump)]


def _differs(what: str, stored: Any, wanted: Any) -> Iterator[str]:
    if stored != wanted:
        yield f"{what}: the store says {stored!r}, the model {wanted!r}"


def _jobs(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("jobs", set(dump.jobs), set(model.jobs))
    for job_id in set(dump.jobs) & set(model.jobs):
        stored, wanted = dump.jobs[job_id], model.jobs[job_id]
        for field in (
            "state",
            "n",
            "charged",
            "crashes",
            "lost",
            "fence",
            "eligible",
            "started",
            "est",
            "resources",
        ):
            yield from _differs(f"{field} of job {job_id}", getattr(stored, field), getattr(wanted, field))
        yield from _differs(f"generation of job {job_id}", stored.flags // 2, wanted.generation)
        yield from _differs(f"creation of job {job_id}", stored.created, wanted.created)
        error = dump.get(f"err:{job_id}", " ").partition(" ")[0]
        yield from _differs(f"error of job {job_id}", error, wanted.error)


def _lanes(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("lane", dump.below("lane"), {n: lane.jobs for n, lane in model.lanes.items()})
    rl = {place: set(lanes) for place, lanes in dump.below("rl").items()}  # truth.py judges their scores
    yield from _differs("rl", rl, {":".join(k): set(z) for k, z in model.rl.items()})
    yield from _differs("wl", dump.below("wl"), {":".join(k): z for k, z in model.wl.items()})
    yield from _differs("wt", dump.below("wt"), {":".join(k): z for k, z in model.wt.items()})
    parked = {(q, r[7:]) for r, queues in dump.below("wq").items() if r.startswith("tenant:") for q in queues}
    yield from _differs("parked tenants", parked, model.parked)


def _turns(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("ready", dump.below("ready"), {q: z for q, z in model.ready.items() if z})
    books = {q: dump.book(q) for q in dump.below("book")}
    passes = {q: dump.passes(q) for q in books}
    yield from _differs(
        "pass", {q: z for q, z in passes.items() if z}, {q: z for q, z in model.passes.items() if z}
    )
    yield from _differs(
        "vt", {q: b.vt for q, b in books.items() if b.vt}, {q: v for q, v in model.vt.items() if v}
    )
    means = {(q, t): mean for q, b in books.items() for t, (_, mean) in b.tenants.items() if mean}
    yield from _differs("mean", means, {k: mean for k, mean in model.means.items() if mean})
    stored = {q: float(v) for q, v in dump.get("qpass", {}).items()}
    yield from _differs("qpass", stored, model.queue_passes)


def _marks(model: Model, dump: Dump) -> Iterator[str]:
    use = {r: u for r, u in model.use.items() if u and not r.startswith("queue:")}
    yield from _differs("use", dump.below("use"), use)
    yield from _differs("bucket", dump.below("bucket"), {r: str(b) for r, b in model.buckets.items()})
    for name in ("leases", "due", "timers", "failed"):
        yield from _differs(name, dump.get(name, {}), dict(getattr(model, name)))
    yield from _differs("dlq", dump.get("dlq", {}), dict(model.dead))
    yield from _differs("workers", dump.get("workers", {}), model.workers)
    history = {f"{op} {step or '-'}": at * 256 + ord(s) for (op, step), (at, s) in model.history.items()}
    yield from _differs("hist", dump.get("hist", {}), history)
    finished = {q: dump.book(q).gone for q in dump.below("book")}
    yield from _differs("finished", {q: n for q, n in finished.items() if n}, dict(+model.finished))
    meta = dump["meta"]
    counts = {k: int(meta.get(k, 0)) for k in ("stale", "expired", "job", "fence", "pulse", "judge", "clock")}
    wanted = {
        "stale": model.stale,
        "expired": model.lost_leases,
        "job": model.job_ids,
        "fence": model.fences,
        "pulse": model.pulse,
        "judge": model.judge,
        "clock": model.now,
    }
    yield from _differs("meta", counts, wanted)
