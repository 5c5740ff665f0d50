"""The life of a job: every legal edge, in one table.

The scripts of the store name their edges in their headers; a test holds both sets equal; docs/states.md is generated.
Edges that belong to rooms not yet built (authority, gates, reconciliation) join the table with those rooms.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """Where a job is. The value is the letter that the stored record carries."""

    WAITING = "W"
    DELAYED = "D"
    RUNNING = "R"
    FAILED = "F"
    RETRY_WAITING = "T"
    SUCCEEDED = "S"
    CANCELLED = "C"
    DEAD = "X"

    @property
    def finished(self) -> bool:
        """True if the job no longer counts against the bounds of its queue."""
        return self in _FINISHED


_FINISHED = frozenset({State.SUCCEEDED, State.CANCELLED, State.DEAD})


class Event(Enum):
    """What moves a job along an edge."""

    ENQUEUE = "enqueue"
    DUE = "due"
    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    OK = "ok"
    FAILED = "failed"
    RELEASE = "release"
    CANCELLED = "cancelled"
    UNDELIVERABLE = "undeliverable"
    LEASE_UNSEEN = "lease_unseen"
    FIRST_CRASH = "first_crash"
    LEASE_EXPIRED = "lease_expired"
    QUEUE_TIMEOUT = "queue_timeout"
    DEADLINE = "deadline"
    RETRY = "retry"
    GIVEN_UP = "given_up"
    REPLAY = "replay"
    REASSERT = "reassert"


class Reason(Enum):
    """Why a job is in its state; metrics, dead letters and alerts use these words and no others."""

    NONE = ""
    ERROR = "error"
    RETRY_REQUESTED = "retry_requested"
    REJECTED = "rejected"
    SOFT_TIMEOUT = "soft_timeout"
    ATTEMPT_TIMEOUT = "attempt_timeout"
    WORKER_LOST = "worker_lost"
    MEMORY = "memory"
    TERMINATED = "terminated"
    REVOKED = "revoked"
    IGNORED = "ignored"
    UNKNOWN_TASK = "unknown_task"
    UNDECODABLE = "undecodable"
    INVALID_MESSAGE = "invalid_message"
    QUEUE_TIMEOUT = "queue_timeout"
    DEADLINE = "deadline"
    MAX_RETRIES = "max_retries"
    RETRY_WINDOW = "retry_window"
    STEP_TIMEOUT = "step_timeout"
    CRASH_LOOP = "crash_loop"
    UNKNOWN_OUTCOME = "unknown_outcome"


#: (state, event) -> state. `None` as a start means: the job does not exist yet.
EDGES: dict[tuple[State | None, Event], State] = {
    (None, Event.ENQUEUE): State.WAITING,
    (State.DELAYED, Event.DUE): State.WAITING,
    (State.WAITING, Event.CLAIM): State.RUNNING,
    (State.WAITING, Event.QUEUE_TIMEOUT): State.DEAD,
    (State.WAITING, Event.DEADLINE): State.DEAD,
    (State.DELAYED, Event.DEADLINE): State.DEAD,
    (State.RUNNING, Event.HEARTBEAT): State.RUNNING,
    (State.RUNNING, Event.OK): State.SUCCEEDED,
    (State.RUNNING, Event.FAILED): State.FAILED,
    (State.RUNNING, Event.RELEASE): State.WAITING,
    (State.RUNNING, Event.CANCELLED): State.CANCELLED,
    (State.RUNNING, Event.UNDELIVERABLE): State.DEAD,
    (State.RUNNING, Event.LEASE_UNSEEN): State.WAITING,
    (State.RUNNING, Event.FIRST_CRASH): State.WAITING,
    (State.RUNNING, Event.LEASE_EXPIRED): State.FAILED,
    (State.FAILED, Event.RETRY): State.RETRY_WAITING,
    (State.FAILED, Event.GIVEN_UP): State.DEAD,
    (State.RETRY_WAITING, Event.DUE): State.WAITING,
    (State.RETRY_WAITING, Event.DEADLINE): State.DEAD,
    (State.DEAD, Event.REPLAY): State.WAITING,
    (State.WAITING, Event.REASSERT): State.RUNNING,
}

#: an enqueue with a not-before time in the future starts here instead
DELAYED_START = State.DELAYED


def after(state: State | None, event: Event) -> State:
    """The state that follows, or KeyError if the table has no such edge."""
    return EDGES[state, event]
