"""A stock Celery project; the two lines at the end are all that Tidegate asks for."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("project", include=["tests.integration.worker.fleet_tasks"])
app.conf.worker_prefetch_multiplier = int(os.environ.get("LEDGER_PREFETCH", "1"))
if "LEDGER_POOL" in os.environ:
    app.conf.worker_pool = os.environ["LEDGER_POOL"]

if "TIDEGATE_CONFIG" in os.environ:  # not in the test process
    import tidegate.worker.install

    tidegate.worker.install.install(app)
