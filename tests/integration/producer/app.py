"""The Celery app of the worker in these tests."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("shop", include=["tests.integration.producer.work"])

if "TIDEGATE_CONFIG" in os.environ:  # not in the test process
    import tidegate

    tidegate.install(app)
