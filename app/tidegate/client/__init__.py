"""L5: what producers call."""

from __future__ import annotations

from tidegate.client.offer import enqueue, enqueue_many
from tidegate.client.receipt import JobEnded, NoResult, NotFinished, Receipt
from tidegate.client.request import Call, Options, TaskLike, call

__all__ = [
    "Call",
    "JobEnded",
    "NoResult",
    "NotFinished",
    "Options",
    "Receipt",
    "TaskLike",
    "call",
    "enqueue",
    "enqueue_many",
]
