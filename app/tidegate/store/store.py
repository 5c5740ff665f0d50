"""The store as the rest of Tidegate sees it: one method per command."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from tidegate.config import Settings
from tidegate.domain.decision import Decision
from tidegate.domain.errors import StoreRefused, StoreUnavailable
from tidegate.domain.job import ClaimedJob, JobView, LeaseRef, NewJob, Outcome, Settled, SettleWord
from tidegate.domain.states import State
from tidegate.domain.verdict import Full, Verdict
from tidegate.store import record, reply, start
from tidegate.store.call import (
    MAX_ENQUEUE,
    MAX_OUTCOMES,
    ClaimReply,
    ClaimRequest,
    DeadJob,
    DeadLetter,
    ExtendReply,
    Failure,
    ReapReply,
    WorkerInfo,
    decision_arguments,
    outcome_arguments,
)
from tidegate.store.connection import CLASSES, Scheme, Target, TcpConnection, TlsConnection, UnixConnection
from tidegate.store.errors import OutOfMemoryError, ResponseError
from tidegate.store.keyspace import Keyspace, decode, encode
from tidegate.store.line import Argument, Engine, Line
from tidegate.store.script import Script, load
from tidegate.store.snapshot import Snapshot, snapshot

Role = Literal["producer", "worker", "beat", "tool"]
T = TypeVar("T")
_NO_TASKS: Mapping[str, str] = MappingProxyType({})
_PIPELINE = 8  # enqueue scripts in flight at once

#: the server itself refuses to take more
NO_MEMORY = Full("store", 0, 0, 1.0)


class Store:
    """The only door to Redis or Valkey. Thread-safe, and safe to use after a fork (a child opens lines of its own)."""

    def __init__(self, settings: Settings, url: str) -> None:
        self.settings, self.url = settings, url
        self.target = Target.parse(url)
        self.keyspace = Keyspace(settings.fleet.name)
        self.engine = Engine()
        self.worker_id = ""
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._idle: list[Line] = []

    @classmethod
    def open(
        cls, settings: Settings, role: Role = "tool", *, url: str | None = None, clock_ms: int | None = None
    ) -> Store:
        """Connect, check the server, create or join the fleet.

        clock_ms: create the fleet with a test clock that starts there. Raises StoreUnavailable, StoreRefused.
        """
        store = cls(settings, url or settings.broker.url)
        with store._line() as line:
            info = start.information(line, settings.fleet.enqueue_timeout)
            start.check_server(info, settings, store.target.shown)
            start.claim_fleet(line, settings, store.target.shown, "-" if clock_ms is None else str(clock_ms))
            start.configure(line, settings, replace=role != "producer")
        return store

    # -- what other layers need to build connections of their own

    @property
    def key_prefix(self) -> str:
        """The prefix of every key of the fleet: `{fleet}:`."""
        return self.keyspace.prefix

    @property
    def redis_url(self) -> str:
        """The server's URL in the form kombu and Celery's result backend understand."""
        if self.target.scheme != "unix":
            return self.url
        secret = f":{self.target.password}@" if self.target.password else ""
        return f"redis+socket://{secret}{self.target.path}?virtual_host={self.target.db}"

    def connection_class(
        self, scheme: Scheme
    ) -> type[TcpConnection] | type[TlsConnection] | type[UnixConnection]:
        """A redis-py connection class whose instances know the server's `run_id`."""
        return CLASSES[scheme]

    # -- producers

    def enqueue(self, jobs: Sequence[NewJob], timeout: float | None = None) -> list[Verdict]:
        """Offer jobs; one verdict each, in order. A lost reply is asked for again until `timeout` (seconds).

        Raises StoreUnavailable (nothing is known about the jobs if `maybe_done`), StoreRefused.
        """
        limit = self.settings.fleet.enqueue_timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        if len(jobs) == 1 and (alone := self._offer_one(jobs[0], limit)) is not None:
            return [alone]
        found: dict[int, Verdict] = {}
        try:
            while missing := [i for i in range(len(jobs)) if i not in found]:
                self._offer(jobs, missing, found, deadline)
                # the server came back and a key may live in a worker's memory only: ask again when the hold ends
                if len(found) < len(jobs):
                    pause = min(0.1, deadline - time.monotonic())
                    if pause <= 0:
                        raise StoreUnavailable(
                            self.target.shown, "it came back and waits for its workers; try again"
                        )
                    time.sleep(pause)
        except StoreUnavailable as exc:
            if exc.maybe_done or not found:
                raise
            raise StoreUnavailable(exc.url, exc.reason, maybe_done=True) from exc
        return [found[i] for i in range(len(jobs))]

    def _offer_one(self, job: NewJob, timeout: float) -> Verdict | None:
        """What most producers do most of the time. None: held by a hold."""
        (answer,) = self._run([(load("enqueue"), record.enqueue_arguments(job))], timeout)
        if isinstance(answer, OutOfMemoryError):
            return NO_MEMORY
        verdict = reply.verdict(job, reply.verdicts(answer, self.target.shown)[0])
        return None if isinstance(verdict, reply.Held) else verdict

    def _offer(
        self, jobs: Sequence[NewJob], which: Sequence[int], found: dict[int, Verdict], deadline: float
    ) -> None:
        """One round over the jobs `which`; verdicts go to `found`. What is held by a hold stays without one."""
        chunks = [which[i : i + MAX_ENQUEUE] for i in range(0, len(which), MAX_ENQUEUE)]
        for start_at in range(0, len(chunks), _PIPELINE):
            now = chunks[start_at : start_at + _PIPELINE]
            calls = [
                (load("enqueue"), [a for i in chunk for a in record.enqueue_arguments(jobs[i])])
                for chunk in now
            ]
            answers = self._run(calls, max(0.0, deadline - time.monotonic()))
            for chunk, answer in zip(now, answers, strict=True):
                if isinstance(answer, OutOfMemoryError):
                    found.update(dict.fromkeys(chunk, NO_MEMORY))
                    continue
                for i, text in zip(chunk, reply.verdicts(answer, self.target.shown), strict=True):
                    verdict = reply.verdict(jobs[i], text)
                    if not isinstance(verdict, reply.Held):
                        found[i] = verdict

    # -- workers

    def register(self, worker: WorkerInfo, tasks: Mapping[str, str] = _NO_TASKS) -> None:
        """Announce a worker, durably: a server that loses its last second must still know whom to wait for.

        tasks: what its code says of each (JSON), empty for nothing.
        """
        self.worker_id = worker.worker_id
        said = [word for name, text in tasks.items() for word in (encode(name), text)]
        with self._line() as line:
            self._call(line, "register", worker.worker_id, json.dumps(asdict(worker)), *said)
            self._make_durable(line)

    def _make_durable(self, line: Line) -> None:
        answer = line.command("WAITAOF", 1, 0, 2000, timeout=3.0)
        if isinstance(answer, ResponseError) and "unknown command" in str(answer).lower():
            time.sleep(2.0)  # Redis 7.0: appendfsync everysec has written by then

    def unregister(self, worker_id: str) -> None:
        """A polite exit: nobody waits for this worker any more."""
        self._one("unregister", worker_id)

    def claim(self, request: ClaimRequest) -> ClaimReply:
        """Up to sixteen jobs with leases; riding outcomes are settled first."""
        return reply.claim(self._one("claim", *request.arguments()), self.target.shown)

    def settle(
        self, outcomes: Sequence[Outcome], worker_id: str | None = None, timeout: float | None = None
    ) -> list[SettleWord]:
        """Report how attempts ended; one word each. Works while the server is out of memory."""
        words: list[SettleWord] = []
        for i in range(0, len(outcomes), MAX_OUTCOMES):
            part = outcomes[i : i + MAX_OUTCOMES]
            arguments = (worker_id or self.worker_id, len(part), *outcome_arguments(list(part)))
            words += reply.words(self._one("settle", *arguments, timeout=timeout), self.target.shown)
        return words

    def release(self, refs: Sequence[LeaseRef], worker_id: str | None = None) -> list[SettleWord]:
        """Give back attempts that never started."""
        return reply.words(
            self._one("release", worker_id or self.worker_id, *map(str, refs)), self.target.shown
        )

    def extend(self, worker_id: str, refs: Sequence[LeaseRef], timeout: float | None = None) -> ExtendReply:
        """Keep leases alive for another lease period."""
        raw = self._one("extend", worker_id, *map(str, refs), timeout=timeout)
        return reply.extended(raw)

    def reassert(
        self, worker_id: str, leases: Sequence[ClaimedJob], outcomes: Sequence[Settled]
    ) -> tuple[LeaseRef, ...]:
        """After the server came back: what this worker holds and reported lately. Gives the leases that are lost."""
        lost: list[LeaseRef] = []
        lease_parts = [leases[i : i + 16] for i in range(0, len(leases), 16)]
        outcome_parts = [outcomes[i : i + 64] for i in range(0, len(outcomes), 64)]
        steps = max(1, len(lease_parts), len(outcome_parts))
        for i in range(steps):
            held = lease_parts[i] if i < len(lease_parts) else ()
            done = outcome_parts[i] if i < len(outcome_parts) else ()
            arguments: list[Argument] = [worker_id, int(i == steps - 1), len(held)]
            for job in held:
                arguments += (str(job.ref), job.record)
            arguments.append(len(done))
            for settled in done:
                arguments += (*outcome_arguments([settled.outcome]), settled.head)
            lost += [LeaseRef.parse(ref.decode()) for ref in self._one("reassert", *arguments)[1]]
        return tuple(lost)

    # -- maintenance

    def reap(self, limit: int = 32) -> ReapReply:
        """Judge leases that ended; also the pulse by which outages are noticed, so call it about once a second."""
        with self._line() as line:
            used, most = _memory(start.information(line))
            raw = self._call(line, "reap", limit, used * 1000 // most if most else 0)
        return ReapReply(int(raw[1]), int(raw[2]))

    def promote(self, limit: int = 100) -> int:
        """Delayed jobs whose time has come, and waiting ones whose time is over; how many entries were due."""
        return int(self._one("promote", limit)[1])

    # -- the authority

    def failures(self, most: int = 100) -> tuple[int, tuple[Failure, ...]]:
        """The server's time (ms), and failed attempts that wait for a decision, the oldest first."""
        _, now_ms, *rows = self._one("failures", most)
        found = (
            record.failure(job_id.decode(), head, error.decode("utf-8", "replace"))
            for job_id, head, error in rows
        )
        return int(now_ms), tuple(found)

    def decide(self, decisions: Sequence[tuple[Failure, Decision]]) -> int:
        """Apply decisions; how many were accepted. What somebody else decided meanwhile is left alone."""
        arguments = [word for one in decisions for word in decision_arguments(*one)]
        return list(self._one("decide", *arguments)[1]).count(b"ok")

    def policies(self, known: str = "-") -> tuple[str, dict[str, str]]:
        """Version of what workers say about their tasks, and all of it (JSON by task) unless that is the one known."""
        _, version, *flat = self._one("policies", known)
        words = [word.decode() for word in flat]
        return version.decode(), {
            decode(name): text for name, text in zip(words[::2], words[1::2], strict=True)
        }

    def dead_letters(self, most: int = 50, skip: int = 0) -> tuple[int, tuple[DeadLetter, ...]]:
        """How many there are, and at most so many of them, the latest first."""
        _, total, *rows = self._one("dead", most, skip)
        found = (
            DeadLetter(record.view(job_id.decode(), raw, error.decode("utf-8", "replace")), int(float(died)))
            for job_id, died, raw, error in rows
        )
        return int(total), tuple(found)

    def untold(self, most: int = 100, told: Sequence[str] = ()) -> tuple[DeadJob, ...]:
        """Dead jobs whose results are not written yet, the oldest first. told: ids of jobs that need it no more."""
        _, *rows = self._one("untold", most, *told)
        return tuple(record.dead_job(job_id.decode(), head) for job_id, head in rows)

    def advance_clock(self, milliseconds: int) -> int:
        """Move the clock of a fleet with a test clock; StoreRefused for any other. Gives the new time in ms."""
        raw = self._one("clock", milliseconds)
        if raw[0] == b"real":
            raise StoreRefused(
                self.target.shown, "the fleet runs on the server's clock", "create one with a test clock"
            )
        return int(raw[1])

    # -- questions

    def snapshot(self) -> Snapshot:
        """The fleet in numbers, from one instant."""
        with self._line() as line:
            info = start.information(line)
            names = list(self.settings.queues)
            raw = self._call(line, "snapshot", *map(encode, names))
            extra = [q for q in raw[-1] if q.decode() not in set(map(encode, names))]
            if extra:
                raw = self._call(line, "snapshot", *map(encode, names), *extra)
        return snapshot(raw, info, _memory(info))

    def job(self, operation_id: str, step: str = "") -> JobView | None:
        """An unfinished or dead job, whole; None if there is none of that name (any more)."""
        raw = self._one("job", encode(operation_id), encode(step))
        return (
            record.view(raw[1].decode(), raw[2], raw[3].decode("utf-8", "replace"), raw[4])
            if raw[0] == b"job"
            else None
        )

    def known(self) -> bool:
        """True if the store has a fleet of this name, of whatever release."""
        with self._line() as line:
            return bool(line.command("EXISTS", f"{self.key_prefix}meta", timeout=2.0, repeat=True))

    def state(self, operation_id: str, step: str = "") -> State | None:
        """Where a job is; finished ones are known for an hour (100,000 jobs); None = never heard of, or forgotten."""
        raw = self._one("job", encode(operation_id), encode(step))
        if raw[0] == b"job":
            return State(chr(raw[2][0]))
        return State(chr(int(float(raw[1])) % 256)) if raw[0] == b"past" else None

    # -- lines

    def _borrow(self) -> Line:
        if self._pid != os.getpid():  # after a fork: the parent's connections are not ours, not even to close
            with self._lock:
                if self._pid != os.getpid():
                    self._idle, self._pid = [], os.getpid()
        try:
            return self._idle.pop()  # one instruction: no two threads get the same
        except IndexError:
            return Line(self.target, self.key_prefix, self.engine)

    @contextmanager
    def _line(self) -> Iterator[Line]:
        line = self._borrow()
        try:
            yield line
        except BaseException:
            line.close()
            raise
        else:
            self._idle.append(line)

    def _run(self, calls: Sequence[tuple[Script, Sequence[Argument]]], timeout: float) -> list[Any]:
        line = self._borrow()
        try:
            replies = line.run(calls, timeout)
        except BaseException:
            line.close()
            raise
        self._idle.append(line)
        return replies

    def _call(self, line: Line, name: str, *args: Argument, timeout: float | None = None) -> Any:
        limit = self.settings.fleet.enqueue_timeout if timeout is None else timeout
        return reply.checked(line.run([(load(name), args)], limit)[0], self.target.shown)

    def _one(self, name: str, *args: Argument, timeout: float | None = None) -> Any:
        with self._line() as line:
            return self._call(line, name, *args, timeout=timeout)

    def close(self) -> None:
        """Drop all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._pid == os.getpid():
            for line in idle:
                line.close()


def _memory(info: dict[str, str]) -> tuple[int, int]:
    return int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
