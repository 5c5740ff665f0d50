"""`tidegate.context(...)`: what every publish inside a `with` block says, if it does not say otherwise itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypedDict, Unpack

from tidegate.domain.errors import InvalidJob
from tidegate.worker.said import NOTHING, Duration, Instant, Said

_ambient: ContextVar[Said | None] = ContextVar("tidegate_ambient", default=None)


class Ambient(TypedDict, total=False):
    """What may be said for many jobs at once. An idempotency key names one send and is not among it."""

    tenant: str
    operation_id: str
    priority: str | int
    queue_timeout: Duration
    deadline: Instant


@contextmanager
def context(**words: Unpack[Ambient]) -> Iterator[None]:
    """Say tenant, operation_id, priority, queue_timeout or deadline for every job published inside the block.

    Works for `enqueue`, `delay`, `apply_async`, whole canvases and the code they call, in this thread or asyncio
    task. An inner context adds to the outer one and wins over it; a keyword or header of one call wins over both.
    With `operation_id` all jobs of the block are steps of that operation. A relative deadline counts from the
    start of the block. Raises InvalidJob.
    """
    unknown = words.keys() - Ambient.__annotations__
    if unknown:
        raise InvalidJob(
            f"unknown: {', '.join(sorted(unknown))}", "context", ", ".join(Ambient.__annotations__)
        )
    said = Said.read(words, time.time_ns() // 1_000_000).over(ambient())
    token = _ambient.set(said)
    try:
        yield
    finally:
        _ambient.reset(token)


def ambient() -> Said:
    """What the contexts around this call say together."""
    return _ambient.get() or NOTHING
