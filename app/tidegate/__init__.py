"""Tidegate: backpressure for Celery.

The names below are imported when they are first used: `import tidegate` alone costs nothing, and a process that only
reads settings never loads Celery.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.client import Call, JobEnded, NoResult, NotFinished, Receipt, call, enqueue, enqueue_many
    from tidegate.config import ConfigError, Settings
    from tidegate.domain.errors import (
        IdempotencyConflict,
        InvalidJob,
        NeverRunnable,
        QueueClosed,
        QueueFull,
        Refused,
        StoreRefused,
        StoreUnavailable,
        TidegateError,
        TooLarge,
        UnknownQueue,
    )
    from tidegate.worker.context import context
    from tidegate.worker.current import CurrentJob, current_job
    from tidegate.worker.install import install

__version__ = "0.1.0"

_HOME = {
    **dict.fromkeys(
        ("Call", "JobEnded", "NoResult", "NotFinished", "Receipt", "call", "enqueue", "enqueue_many"),
        "tidegate.client",
    ),
    **dict.fromkeys(("ConfigError", "Settings"), "tidegate.config"),
    **dict.fromkeys(
        (
            "IdempotencyConflict",
            "InvalidJob",
            "NeverRunnable",
            "QueueClosed",
            "QueueFull",
            "Refused",
            "StoreRefused",
            "StoreUnavailable",
            "TidegateError",
            "TooLarge",
            "UnknownQueue",
        ),
        "tidegate.domain.errors",
    ),
    "context": "tidegate.worker.context",
    "CurrentJob": "tidegate.worker.current",
    "current_job": "tidegate.worker.current",
    "install": "tidegate.worker.install",
}

__all__ = [
    "Call",
    "ConfigError",
    "CurrentJob",
    "IdempotencyConflict",
    "InvalidJob",
    "JobEnded",
    "NeverRunnable",
    "NoResult",
    "NotFinished",
    "QueueClosed",
    "QueueFull",
    "Receipt",
    "Refused",
    "Settings",
    "StoreRefused",
    "StoreUnavailable",
    "TidegateError",
    "TooLarge",
    "UnknownQueue",
    "call",
    "context",
    "current_job",
    "enqueue",
    "enqueue_many",
    "install",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
