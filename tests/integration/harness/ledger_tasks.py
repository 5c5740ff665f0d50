"""A stock Celery application (no Tidegate) whose tasks write to the ledger; the broker comes from BROKER_URL."""

from __future__ import annotations

import os
import signal

from celery import Celery
from tests.harness import ledger

app = Celery("ledger_tasks", broker=os.environ["BROKER_URL"])


@app.task  # type: ignore[untyped-decorator]
def record(job: str) -> None:
    ledger.end(ledger.begin(job))


@app.task  # type: ignore[untyped-decorator]
def hang(job: str) -> None:
    ledger.begin(job)
    signal.pause()
