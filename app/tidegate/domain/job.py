"""What a job, an attempt and a lease are, as values. Times are milliseconds of the server's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tidegate.domain.states import Reason, State

#: length of the fixed part of a stored record; its last two bytes are the length of the words that follow
HEADER_BYTES = 68


class Priority(Enum):
    """Levels of urgency; the value is how many milliseconds earlier the job is served (age always wins in the end)."""

    LOW = -60_000
    NORMAL = 0
    HIGH = 60_000
    URGENT = 300_000


class Effect(Enum):
    """What repeating a task would do (DESIGN §6)."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    AT_MOST_ONCE = "at_most_once"


class Pressure(Enum):
    """How full a queue is: yellow from 70 %, red from 90 %."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"


#: a job names at most so many resources beside its queue and its tenant, budgets counted
MOST_RESOURCES = 8


class Cost(NamedTuple):
    """What a job will use of a dependency's budget: `units` of `unit` (a job may use more, or less, and say so)."""

    dependency: str
    unit: str
    units: int


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a producer asks for. Names are as users write them (the store encodes them).

    `step` is empty for a lone task, else the frozen Celery task id with its nesting, so that a step published twice
    is one job. `continuation` marks a later step of a canvas that was admitted with its first: no bound refuses it.
    """

    queue: str
    tenant: str
    operation_id: str
    envelope: bytes
    step: str = ""
    task: str = ""
    task_id: str = ""
    resources: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()
    priority: Priority = Priority.NORMAL
    idempotency_key: str | None = None
    body_hash: str = ""
    delay_ms: int = 0
    queue_timeout_ms: int = 0
    attempt_timeout_ms: int = 0
    deadline_ms: int = 0
    effect: Effect = Effect.IDEMPOTENT
    continuation: bool = False
    known_operation: bool = (
        False  #: the caller chose operation_id: the store looks for an earlier job of that name
    )


class LeaseRef(NamedTuple):
    """Names one attempt for the store: job id and fencing token. A tuple: each job has it hashed a dozen times."""

    job_id: str
    fence: int

    def __str__(self) -> str:
        return f"{self.job_id}:{self.fence}"

    @classmethod
    def parse(cls, text: str) -> LeaseRef:
        """Inverse of str(); ValueError if the text is no such pair."""
        job_id, _, fence = text.partition(":")
        return cls(job_id, int(fence))


class ClaimedJob(NamedTuple):
    """One job handed to a worker, with the right to run one attempt of it."""

    ref: LeaseRef
    queue: str
    tenant: str
    operation_id: str
    step: str
    task: str
    task_id: str
    attempt: int  #: n: grows at each claim, never used again
    charged: int  #: failed attempts so far that count against max_retries
    crashes: int  #: attempts so far that ended with the loss of their worker
    created_ms: int
    eligible_ms: int
    claimed_ms: int  #: server time of this claim
    deadline_ms: int  #: 0 = none
    attempt_timeout_ms: int  #: 0 = none
    effect: Effect
    envelope: bytes
    record: bytes  #: as stored, kept by the worker to reassert the lease after a lost second

    @property
    def head(self) -> bytes:
        """The record without its body: enough to restore the marks of a job that is already done."""
        return self.record[
            : HEADER_BYTES + int.from_bytes(self.record[HEADER_BYTES - 2 : HEADER_BYTES], "big")
        ]


class OutcomeKind(Enum):
    """How an attempt ended, as the worker reports it. The value is the word the settle script knows."""

    OK = "ok"
    FAILED = "failed"
    RELEASE = "release"  #: never started (polite stop): back to the front, not charged
    CANCELLED = "cancelled"  #: revoked by a person: the job ends
    UNDELIVERABLE = "undeliverable"  #: no worker can ever run these bytes: dead letter


class Outcome(NamedTuple):
    """The one report about the end of one attempt. `detail` is JSON text (error class, message, traceback, code)."""

    ref: LeaseRef
    kind: OutcomeKind
    reason: Reason = Reason.NONE
    detail: str = ""
    not_before_ms: int = 0  #: a task's own wish (`retry(countdown=)`), for the authority


class Settled(NamedTuple):
    """An accepted outcome as a worker remembers it for a few seconds, in case the server forgets its last second."""

    head: bytes  #: ClaimedJob.head
    outcome: Outcome


class SettleWord(Enum):
    """What the store says to a report."""

    OK = "ok"
    HELD = "held"  #: the server restarted and this worker has not reasserted yet: report again afterwards
    STALE = "stale"  #: another attempt owns the job, or nobody does: the report was counted and refused


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a person or a receipt sees it."""

    job_id: str
    operation_id: str
    step: str
    queue: str
    tenant: str
    task: str
    task_id: str
    state: State
    attempt: int
    charged: int
    crashes: int
    created_ms: int
    eligible_ms: int
    deadline_ms: int
    reason: str
    detail: str
    envelope: bytes
    generation: int = 0  #: how often it was replayed
    tries: tuple[
        Mapping[str, Any], ...
    ] = ()  #: attempts that did not succeed, and replays, the latest twenty
