"""The Celery app that workers of these tests run: its tasks tell the ledger what really happened.

Settings come from TIDEGATE_CONFIG, the ledger from LEDGER_URL.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

from celery import Celery
from tests.harness import ledger

from tidegate.worker.current import current_job
from tidegate.worker.install import install

app = Celery("fleet")
app.conf.worker_prefetch_multiplier = int(os.environ.get("LEDGER_PREFETCH", "1"))
if "TIDEGATE_CONFIG" in os.environ:  # not in the test process, which only wants the names
    install(app)


def begin(job: str) -> str:
    return ledger.begin(job, fence=current_job().fence)


@app.task(name="work")
def work(job: str, seconds: float) -> str:
    """Sleep, as a task that waits for somebody does."""
    attempt = begin(job)
    time.sleep(seconds)
    ledger.end(attempt)
    return job


@app.task(name="spin")
def spin(job: str, seconds: float) -> str:
    """Compute in Python, with the interpreter lock changing hands."""
    attempt = begin(job)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
    ledger.end(attempt)
    return job


@app.task(name="hog")
def hog(job: str, seconds: int) -> str:
    """Sit in a C call that keeps the interpreter lock: no thread of this process runs meanwhile."""
    attempt = begin(job)
    ctypes.PyDLL(None).sleep(seconds)
    ledger.end(attempt)
    return job


@app.task(name="spawn")
def spawn(job: str, seconds: float) -> str:
    """Let a subprocess do the work; its pid goes to the ledger."""
    attempt = begin(job)
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    ledger.note("spawned", pid=child.pid)
    child.wait()
    ledger.end(attempt)
    return job


@app.task(name="once")
def once(job: str, seconds: float) -> str:
    """As `work`, but a second run would do harm (the settings say so)."""
    attempt = begin(job)
    time.sleep(seconds)
    ledger.end(attempt)
    return job
