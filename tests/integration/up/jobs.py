"""The tasks of the fleets under test: they tell the ledger what really happened."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import subprocess
import sys
import time

from celery import shared_task
from tests.harness import ledger


@shared_task(name="work")
def work(job: str, seconds: float) -> str:
    attempt = ledger.begin(job)
    time.sleep(seconds)
    ledger.end(attempt)
    return job


@shared_task(name="spawn")
def spawn(job: str, seconds: float) -> str:
    """A subprocess does the work; its pid goes to the ledger."""
    attempt = ledger.begin(job)
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    ledger.note("spawned", pid=child.pid)
    child.wait()
    ledger.end(attempt)
    return job
