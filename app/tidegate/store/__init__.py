"""L3: the only door to Redis and Valkey."""

from __future__ import annotations

from tidegate.store.call import (
    ClaimReply,
    ClaimRequest,
    DeadJob,
    DeadLetter,
    ExtendReply,
    QueueCounts,
    ReapReply,
    Snapshot,
    WorkerInfo,
)
from tidegate.store.channel import ClaimChannel
from tidegate.store.store import Store

__all__ = [
    "ClaimChannel",
    "ClaimReply",
    "ClaimRequest",
    "DeadJob",
    "DeadLetter",
    "ExtendReply",
    "QueueCounts",
    "ReapReply",
    "Snapshot",
    "Store",
    "WorkerInfo",
]
