"""Asks workers to write the results of dead jobs: errbacks, chords and result backends need the user's code.

Asking twice is harmless: the job that does it has a name of its own, and the store takes it once.
"""

from __future__ import annotations

import json
import time
import uuid

from tidegate.config import Settings
from tidegate.domain.finalize import STEP, TASK
from tidegate.domain.header import JobHeader
from tidegate.domain.job import NewJob
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.store import DeadJob, Store
from tidegate.transport.message import task_message
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
    message = task_message(
        TASK,
        (dead.operation_id, dead.step, dead.generation),
        {},
        task_id=task_id,
        header=header,
        ignore_result=True,
    )
    return new_job(settings, queue, message, time.time_ns() // 1_000_000)
