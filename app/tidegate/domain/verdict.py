"""Answers to "may this job come in?": a closed union. A verdict is never a state of a job."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.domain.job import Pressure
from tidegate.domain.states import State


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job is stored. position: waiting jobs of its queue, this one included."""

    operation_id: str
    position: int
    pressure: Pressure


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The job was stored before (same key, or same operation and step); nothing was added."""

    operation_id: str
    state: State


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key was used before with another body; nothing was added."""

    operation_id: str


@dataclass(frozen=True, slots=True)
class Full:
    """A bound is reached. scope: queue:NAME, tenant:NAME or store; retry_after in seconds."""

    scope: str
    depth: int
    limit: int
    retry_after: float


@dataclass(frozen=True, slots=True)
class Closed:
    """The queue is closed for new jobs."""

    queue: str


@dataclass(frozen=True, slots=True)
class TooCostly:
    """The job needs more at once than a budget ever holds. resource: as people write it; cost, capacity: units."""

    resource: str
    cost: int
    capacity: int


Verdict = Accepted | Duplicate | Conflict | Full | Closed | TooCostly
