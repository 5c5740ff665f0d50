"""What really happened, told by the tasks and the producers themselves, without asking the store.

One line of JSON per event, appended with a single write: what a process wrote before it was killed is there. Times are
CLOCK_MONOTONIC in seconds, the same clock in all processes of the machine.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: environment variable with the path of the ledger, for worker processes
VARIABLE = "DEMO_LEDGER"


@dataclass(frozen=True, slots=True)
class Entry:
    """kind: accepted, duplicate, rejected (by a producer); begin, end, failed (by an attempt); killed (by the demo).

    job: Celery's task id. attempt: its number. at: seconds. info: whatever else is worth knowing.
    """

    kind: str
    at: float
    job: str = ""
    tenant: str = ""
    attempt: int = 0
    pid: int = 0
    info: dict[str, Any] = field(default_factory=dict)


def write(
    kind: str, job: str = "", tenant: str = "", attempt: int = 0, at: float | None = None, **info: Any
) -> None:
    """Append one entry, now or `at` that time. KeyError if DEMO_LEDGER is not set."""
    entry = Entry(kind, time.monotonic() if at is None else at, job, tenant, attempt, os.getpid(), info)
    line = json.dumps(asdict(entry)).encode() + b"\n"
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def read(path: Path) -> list[Entry]:
    """All entries in the order of their times. ValueError if a line is damaged: then no verdict can be trusted."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        found = [Entry(**json.loads(line)) for line in lines]
    return sorted(found, key=lambda entry: entry.at)


@contextmanager
def attempt(job: str, tenant: str, number: int, **info: Any) -> Iterator[None]:
    """Around the body of a task: `begin`, then `end` or, whatever is raised, `failed`."""
    write("begin", job, tenant, number, **info)
    try:
        yield
    except BaseException as error:
        write("failed", job, tenant, number, error=type(error).__name__)
        raise
    write("end", job, tenant, number)
