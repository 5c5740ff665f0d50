"""L3: the only door to Redis and Valkey."""

from __future__ import annotations

from tidegate.store.call import (
    AuditLine,
    ClaimReply,
    ClaimRequest,
    DeadJob,
    DeadLetter,
    Death,
    ExtendReply,
    ReapReply,
    Replayed,
    WorkerInfo,
)
from tidegate.store.channel import ClaimChannel
from tidegate.store.desk import Desk
from tidegate.store.snapshot import QueueCounts, Snapshot, TenantNow
from tidegate.store.store import Store
from tidegate.store.vitals import Look, Vitals, look

__all__ = [
    "AuditLine",
    "ClaimChannel",
    "ClaimReply",
    "ClaimRequest",
    "DeadJob",
    "DeadLetter",
    "Death",
    "Desk",
    "ExtendReply",
    "Look",
    "QueueCounts",
    "ReapReply",
    "Replayed",
    "Snapshot",
    "Store",
    "TenantNow",
    "Vitals",
    "WorkerInfo",
    "look",
]
