"""Asks workers to write the results of dead jobs: errbacks, chords and result backends need the user's code.

Asking twice is harmless: the job that does it has a name of its own, and the store takes it once.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from tidegate.config import Settings
from tidegate.domain.finalize import STEP, TASK
from tidegate.domain.header import HEADER, JobHeader
from tidegate.domain.job import NewJob
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.store import DeadJob, Store
from tidegate.transport.publish import new_job

#: jobs of one round
BATCH = 100


class Finalizer:
    """One per beat process; any number may run."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._told: tuple[str, ...] = ()

    def step(self) -> bool:
        """One batch; True if there may be more. Raises StoreUnavailable, StoreRefused: the same batch comes again."""
        dead = self._store.untold(BATCH, self._told)
        self._told = ()
        if not dead:
            return False
        # no bound refuses a continuation, since it was accepted with its job; full memory does, and then it comes again
        verdicts = self._store.enqueue([order(self._settings, job) for job in dead])
        self._told = tuple(
            job.job_id
            for job, verdict in zip(dead, verdicts, strict=True)
            if isinstance(verdict, Accepted | Duplicate)
        )
        return bool(self._told)


def order(settings: Settings, dead: DeadJob) -> NewJob:
    """The job that writes the result of `dead`, for its tenant; on its queue, unless the settings name that no more."""
    queue = dead.queue if settings.declares(dead.queue) else "default"
    step = f"{STEP}{dead.job_id}"
    if dead.generation:  # each death is told once: the job that told of the one before may be remembered
        step += f"-{dead.generation}"
    header = JobHeader(
        tenant=dead.tenant, operation_id=dead.operation_id, step=step, continuation=True, known=True
    )
    task_id = str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([settings.fleet.name, dead.operation_id, step])))
    message: dict[str, Any] = {
        "body": json.dumps([[dead.operation_id, dead.step, dead.generation], {}, _NOTHING]),
        "content-type": "application/x-tidegate+json",
        "content-encoding": "utf-8",
        "headers": {
            "task": TASK,
            "id": task_id,
            "root_id": task_id,
            "ignore_result": True,
            "argsrepr": repr((dead.operation_id, dead.step, dead.generation)),
            HEADER: header.as_dict(),
        },
        "properties": {"correlation_id": task_id},
    }
    return new_job(settings, queue, message, time.time_ns() // 1_000_000)


_NOTHING = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
