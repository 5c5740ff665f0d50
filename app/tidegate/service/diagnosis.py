"""What is wrong with a fleet, or soon will be: pure rules over one look at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tidegate.config import Settings
from tidegate.store import Look, Snapshot, Vitals
from tidegate.store.start import SCHEMA, check_version

#: seconds: a clock may differ that much; a failed attempt waits no longer for a beat
CLOCKS, UNDECIDED = 1.0, 10.0
#: parts of maxmemory: from here on soon full; from here on producers are refused
FILLING, FULL = 0.7, 0.85


class Level(Enum):
    """OK, a thing to look at, a thing to mend."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """found: what is so. remedy: what to do next; empty if nothing need be done."""

    level: Level
    name: str
    found: str
    remedy: str = ""

    def as_dict(self) -> dict[str, str]:
        """The stable JSON form."""
        return {"level": self.level.value, "name": self.name, "found": self.found, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Facts:
    """mode: of the embedded server's directory, None for another server."""

    settings: Settings
    seen: Look
    mode: int | None = None


def diagnose(facts: Facts) -> tuple[Finding, ...]:
    """Every rule, in the order in which things depend on each other."""
    seen = facts.seen
    found = [*of_settings(facts.settings), *_server(facts), *_clock(seen)]
    if seen.vitals is None:
        remedy = "start a worker or send a job; if there was a fleet, its data are gone"
        return (*found, _warning("fleet", f"no fleet {facts.settings.fleet.name!r} in this store", remedy))
    found += _schema(seen.vitals)
    if seen.snapshot is not None:
        found += _fleet(facts.settings, seen.vitals, seen.snapshot)
    return tuple(found)


def of_settings(settings: Settings) -> Iterator[Finding]:
    """What can be said without a store."""
    where = str(settings.source or "defaults and environment")
    yield _ok("settings", where)
    for warning in settings.warnings:
        yield _warning("settings", warning)


def _server(facts: Facts) -> Iterator[Finding]:
    info, settings = facts.seen.info, facts.settings
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = f"{name} {info.get('valkey_version') or info.get('redis_version', '?')}"
    old = check_version(info)
    yield failure("server", old, "upgrade the server") if old else _ok("server", version)
    yield from _eviction(info, settings)
    yield from _memory(info)
    yield from _persistence(info)
    if facts.mode is not None:
        where = str(settings.data_dir)
        if facts.mode & 0o077:
            yield failure(
                "directory", f"{where} has mode {facts.mode:o}", f"chmod 700 {where}: others can read jobs"
            )
        else:
            yield _ok("directory", f"{where}, mode {facts.mode:o}")


def _eviction(info: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        yield _ok("eviction", "none: the server throws no job away")
    elif settings.broker.allow_eviction:
        yield _warning("eviction", f"{policy}, which broker.allow_eviction accepts: jobs can be lost")
    else:
        yield failure("eviction", f"maxmemory-policy is {policy}", "CONFIG SET maxmemory-policy noeviction")


def _memory(info: Mapping[str, str]) -> Iterator[Finding]:
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not most:
        what = f"{used / 2**20:.0f} MiB used, and no limit set"
        yield _warning(
            "memory", what, "set maxmemory, so that producers are refused before the machine is full"
        )
        return
    what = f"{used / most:.0%} of {most / 2**20:.0f} MiB used"
    if used >= FULL * most:
        yield failure(
            "memory", what, "producers are refused: raise maxmemory, or replay and discard dead letters"
        )
    elif used >= FILLING * most:
        yield _warning("memory", what, f"from {FULL:.0%} on producers are refused")
    else:
        yield _ok("memory", what)


def _persistence(info: Mapping[str, str]) -> Iterator[Finding]:
    if info.get("aof_enabled", "0") == "0":
        yield _warning(
            "persistence", "no append-only file: jobs are lost when the server stops", "appendonly yes"
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        yield failure(
            "persistence", "the append-only file cannot be written", "make room on the server's disk"
        )
    else:
        yield _ok("persistence", "append-only file")


def _clock(seen: Look) -> Iterator[Finding]:
    if seen.vitals is not None and seen.vitals.test_clock:
        yield _warning("clock", "the fleet runs on a test clock, which only `clock advance` moves")
    elif abs(seen.ahead) > CLOCKS:
        where = "ahead of" if seen.ahead > 0 else "behind"
        what = f"the server's clock is {abs(seen.ahead):.1f} s {where} this machine's"
        yield _warning("clock", what, "let both be set by NTP: deadlines and schedules are read by both")
    else:
        yield _ok("clock", "the server's and this machine's agree")


def _schema(vitals: Vitals) -> Iterator[Finding]:
    if vitals.schema == SCHEMA:
        yield _ok("schema", f"key schema {SCHEMA}")
    else:
        remedy = (
            "use the release that wrote it"
            if vitals.schema > SCHEMA
            else "empty the store, or name another fleet"
        )
        yield failure("schema", f"key schema {vitals.schema}; this release reads {SCHEMA}", remedy)


def _fleet(settings: Settings, vitals: Vitals, now: Snapshot) -> Iterator[Finding]:
    if now.held_ms:
        yield _warning("epoch", f"the store came back and waits {now.held_ms / 1000:g} s for its workers")
    else:
        yield _ok("epoch", f"{now.epoch}; the store came back {now.resets} times")
    yield from _workers(settings, vitals, now)
    yield from _queues(now)
    yield from _beat(vitals, now)
    if now.dead:
        yield _warning(
            "dead letters", f"{now.dead} jobs are not tried again", "`tidegate dlq list` shows them"
        )
    else:
        yield _ok("dead letters", "none")


def _workers(settings: Settings, vitals: Vitals, now: Snapshot) -> Iterator[Finding]:
    lease = settings.worker.lease
    heard = {worker: (vitals.now_ms - at) / 1000 for worker, at in vitals.heard.items()}
    silent = [one for one in now.workers if heard.get(one.worker_id, 0.0) > lease]
    alive = [one for one in now.workers if one not in silent]
    if not alive:
        yield failure("workers", "none: nothing that waits is started", "`tidegate worker`, or `tidegate up`")
    else:
        yield _ok("workers", f"{len(alive)}, {sum(one.concurrency for one in alive)} slots")
    for one in silent:
        what = f"{one.hostname} (pid {one.pid}) has been silent for {heard[one.worker_id]:.0f} s"
        yield _warning("workers", what, "is it frozen or cut off? It is forgotten after four leases")
    for one in alive:
        if one.pool not in ("", "prefork"):
            what = f"{one.hostname} runs the {one.pool} pool, which cannot kill a body"
            yield _warning(
                "workers", what, "at a timeout or a fence the whole process ends; prefork ends one child"
            )
    releases = sorted({one.release or "(none)" for one in alive})
    if len(releases) > 1:
        yield _warning(
            "release", f"several at once: {', '.join(releases)}", "fine while a deploy is under way"
        )


def _queues(now: Snapshot) -> Iterator[Finding]:
    served = {queue for one in now.workers for queue in one.queues}
    for name, queue in sorted(now.queues.items()):
        if name in served or not now.workers:
            continue
        what = f"no worker consumes {name!r}"
        remedy = f"add it to worker.queues, or run `tidegate worker -Q {name}`"
        if queue.waiting:
            yield failure("queues", f"{what}, and {queue.waiting} jobs wait there", remedy)
        else:
            yield _warning("queues", what, remedy)


def _beat(vitals: Vitals, now: Snapshot) -> Iterator[Finding]:
    if now.beat_alive:
        yield _ok("beat", "alive")
    else:
        silence = now.beat_silent_s
        ever = "there never was one" if silence is None else f"silent for {silence:.0f} s"
        what = "no retry, no schedule, no result of a dead job"
        yield failure("beat", f"{ever}: {what}", "`tidegate beat`, better two of them")
    undecided = (vitals.now_ms - vitals.failed_since_ms) / 1000
    if vitals.failed_since_ms and undecided > UNDECIDED:
        what = f"{now.failed} failed attempts wait for a decision, one for {undecided:.0f} s"
        yield failure("decisions", what, "see the log of `tidegate beat`")
    untold = (vitals.now_ms - vitals.untold_since_ms) / 1000
    if vitals.untold and untold > UNDECIDED:
        what = f"the results of {vitals.untold} dead jobs are not written yet"
        yield _warning("results", what, "beat asks a worker to do it: is there one of each?")


def _ok(name: str, found: str) -> Finding:
    return Finding(Level.OK, name, found)


def _warning(name: str, found: str, remedy: str = "") -> Finding:
    return Finding(Level.WARNING, name, found, remedy)


def failure(name: str, found: str, remedy: str) -> Finding:
    """Something that must be mended."""
    return Finding(Level.FAILURE, name, found, remedy)
