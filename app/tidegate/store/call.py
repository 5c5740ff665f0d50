"""What the store is asked and what it answers, as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidegate.domain.decision import Decision, FailedAttempt, Retry
from tidegate.domain.job import ClaimedJob, JobView, LeaseRef, Outcome, SettleWord
from tidegate.store.keyspace import encode
from tidegate.store.line import Argument

MAX_JOBS = 16  #: jobs of one claim
MAX_OUTCOMES = 32  #: outcomes of one claim or settle
MAX_ENQUEUE = 100  #: jobs of one enqueue script
MAX_REPLAY = 100  #: dead letters of one replay script


class ClaimRequest(NamedTuple):
    """Ask for up to `slots` jobs (0 = only bring outcomes and keep the house) and bring outcomes along."""

    worker_id: str
    queues: tuple[str, ...]
    slots: int
    outcomes: tuple[Outcome, ...] = ()

    def arguments(self) -> list[Argument]:
        """Arguments of the claim script."""
        return [
            self.worker_id,
            min(self.slots, MAX_JOBS),
            len(self.outcomes),
            *outcome_arguments(self.outcomes),
            *map(encode, self.queues),
        ]


def outcome_arguments(outcomes: tuple[Outcome, ...] | list[Outcome]) -> list[Argument]:
    """(lease, kind, reason, detail) of each outcome, flat."""
    flat: list[Argument] = []
    for outcome in outcomes:
        flat += (str(outcome.ref), outcome.kind.value, outcome.reason.value or "-", outcome.detail or "{}")
    return flat


class ClaimReply(NamedTuple):
    """jobs: with leases. words: one per riding outcome. more: claim again at once. wait_ms: until the next claim.

    held_ms > 0: the server came back and waits for its workers; reassert. known False: register first.
    """

    jobs: tuple[ClaimedJob, ...] = ()
    words: tuple[SettleWord, ...] = ()
    more: bool = False
    wait_ms: int = 1000
    held_ms: int = 0
    known: bool = True


@dataclass(frozen=True, slots=True)
class ExtendReply:
    """lost: leases that are not ours any more. held: the server came back; reassert. known: False = register first."""

    lost: tuple[LeaseRef, ...]
    held: bool
    known: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt that waits for a decision. detail: what its worker said (class, message, traceback, ...)."""

    ref: LeaseRef
    task: str
    detail: Mapping[str, Any]
    attempt: FailedAttempt


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead job, whole. died_ms: server time of its death."""

    job: JobView
    died_ms: int


@dataclass(frozen=True, slots=True)
class DeadJob:
    """A dead job whose result a worker still has to write."""

    job_id: str
    operation_id: str
    step: str
    queue: str
    tenant: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Death:
    """A dead letter without its body. generation: how often it was replayed; with `job_id` it names this very death."""

    job_id: str
    generation: int
    operation_id: str
    step: str
    queue: str
    tenant: str
    task: str
    reason: str
    died_ms: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did with one dead letter. word: `ok`, or why it stays (`gone`, `changed`, `expired`, `conflict`,
    `closed`, `held`, `full`, `pressure`); scope: what is full; retry_after: seconds after which room is likely."""

    word: str
    scope: str = ""
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One change that a person made. at_ms: server time; count: how many things it changed."""

    at_ms: int
    by: str
    command: str
    reason: str
    count: int
    detail: Mapping[str, Any]


def decision_arguments(failure: Failure, decision: Decision) -> tuple[Argument, ...]:
    """(lease, word, instant, reason, detail). A dead letter keeps the reason of its last failure in its detail."""
    if isinstance(decision, Retry):
        return str(failure.ref), "retry", decision.at_ms, decision.reason.value, "{}"
    detail = json.dumps({**failure.detail, "last": failure.attempt.reason.value})
    return str(failure.ref), "given_up", 0, decision.reason.value, detail


@dataclass(frozen=True, slots=True)
class ReapReply:
    """Leases that ended: jobs that went back to their line, and jobs that wait for the authority."""

    requeued: int
    failed: int


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker process, for people: its id is random per start, never a host name or pid."""

    worker_id: str
    hostname: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    release: str = ""
    pool: str = ""
