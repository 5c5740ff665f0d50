"""The same Celery application twice: stock, and with `tidegate.install()` added. BENCH_KIND says which."""

from __future__ import annotations

import os

from celery import Celery
from tests.bench import tally

import tidegate

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=int(os.environ.get("BENCH_PREFETCH", "1")),
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)
if os.environ["BENCH_KIND"] == "tidegate":
    tidegate.install(app)


@app.task(name="bench.noop")
def noop() -> None:
    """Nothing but being counted."""
    tally.add()
