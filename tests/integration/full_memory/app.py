"""The Celery app of these tests' workers and producers: bodies that tell the ledger, with arguments that take room."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery
from tests.harness import ledger

from tidegate.worker.install import install

app = Celery("full-memory")
if "TIDEGATE_CONFIG" in os.environ:  # not in the test process, which installs its own settings
    install(app)


@app.task(name="load")
def load(job: str, ballast: str = "") -> str:
    """Does little; waits in the store with much."""
    ledger.end(ledger.begin(job))
    return job


@app.task(name="hold")
def hold(job: str, gate: str, fails: bool = False) -> str:
    """Runs until the file `gate` exists; then it returns, or raises."""
    attempt = ledger.begin(job)
    while not Path(gate).exists():
        time.sleep(0.05)
    ledger.end(attempt)
    if fails:
        raise ValueError(f"{job} has no luck")
    return job
