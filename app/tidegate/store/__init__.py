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
from tidegate.store.fire import Astray, FireCall, Fired, FireReply, History, Standing, Unfit
from tidegate.store.snapshot import QueueCounts, Snapshot, TenantNow
from tidegate.store.store import Store
from tidegate.store.timetable import Timetable
from tidegate.store.vitals import Look, Vitals, look

__all__ = [
    "Astray",
    "AuditLine",
    "ClaimChannel",
    "ClaimReply",
    "ClaimRequest",
    "DeadJob",
    "DeadLetter",
    "Death",
    "Desk",
    "ExtendReply",
    "FireCall",
    "FireReply",
    "Fired",
    "History",
    "Look",
    "QueueCounts",
    "ReapReply",
    "Replayed",
    "Snapshot",
    "Standing",
    "Store",
    "TenantNow",
    "Timetable",
    "Unfit",
    "Vitals",
    "WorkerInfo",
    "look",
]
