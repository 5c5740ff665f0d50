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
        error = dump.get(f"err:{job_id}", " ").partition(" ")[0]
        yield from _differs(f"error of job {job_id}", error, wanted.error)


def _lanes(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("lane", dump.below("lane"), {n: lane.jobs for n, lane in model.lanes.items()})
    yield from _differs("rl", dump.below("rl"), {":".join(k): z for k, z in model.rl.items()})
    yield from _differs("wl", dump.below("wl"), {":".join(k): z for k, z in model.wl.items()})
    yield from _differs("wt", dump.below("wt"), {":".join(k): z for k, z in model.wt.items()})
    parked = {(q, r[7:]) for r, queues in dump.below("wq").items() if r.startswith("tenant:") for q in queues}
    yield from _differs("parked tenants", parked, model.parked)


def _turns(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("ready", dump.below("ready"), {q: z for q, z in model.ready.items() if z})
    yield from _differs("pass", dump.below("pass"), {q: z for q, z in model.passes.items() if z})
    stored = {q: float(v) for q, v in dump.below("vt").items() if float(v)}
    yield from _differs("vt", stored, {q: v for q, v in model.vt.items() if v})
    means = {(q, t): float(v) for q, table in dump.below("mean").items() for t, v in table.items()}
    yield from _differs("mean", means, model.means)
    stored = {q: float(v) for q, v in dump.get("qpass", {}).items()}
    yield from _differs("qpass", stored, model.queue_passes)


def _marks(model: Model, dump: Dump) -> Iterator[str]:
    yield from _differs("use", dump.below("use"), {r: u for r, u in model.use.items() if u})
    yield from _differs("bucket", dump.below("bucket"), {r: str(b) for r, b in model.buckets.items()})
    for name in ("leases", "due", "timers", "failed"):
        yield from _differs(name, dump.get(name, {}), dict(getattr(model, name)))
    yield from _differs("dlq", dump.get("dlq", {}), dict(model.dead))
    yield from _differs("workers", dump.get("workers", {}), model.workers)
    history = {f"{op} {step or '-'}": at * 256 + ord(s) for (op, step), (at, s) in model.history.items()}
    yield from _differs("hist", dump.get("hist", {}), history)
    finished = {q: int(table.get("out", 0)) for q, table in dump.below("cnt").items()}
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
