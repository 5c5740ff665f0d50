"""Celery's bootstep that keeps a worker's leases honest: composes page, watchdog, guards, keeper and drain.

The page is made before the pool forks, so that children inherit it; threads and watchdog start after it has.
"""

from __future__ import annotations

import atexit
import logging
import os
from dataclasses import replace
from typing import Any

from billiard.process import current_process
from celery import bootsteps, signals
from celery.exceptions import ImproperlyConfigured
from celery.worker import state

from tidegate.config import Settings
from tidegate.domain.errors import TidegateError
from tidegate.domain.job import ClaimedJob, LeaseRef
from tidegate.embedded.endpoint import broker_url
from tidegate.store import Store, WorkerInfo
from tidegate.transport.binding import OPTION, binding
from tidegate.worker import ends, guard
from tidegate.worker.bodies import Bodies, ChildBodies, OwnBodies
from tidegate.worker.drain import Drain
from tidegate.worker.flush import Flusher
from tidegate.worker.handback import Testament, hand_back, replace_process
from tidegate.worker.heartbeat import Heartbeat
from tidegate.worker.keeper import Keeper
from tidegate.worker.kennel import Kennel
from tidegate.worker.policy import own_texts
from tidegate.worker.revive import Reviver
from tidegate.worker.runtime import Runtime, open_runtime
from tidegate.worker.stamp import MODE_CHILDREN, MODE_MAIN, Stamp, fence_limit_ns
from tidegate.worker.tenure import Tenure
from tidegate.worker.time_limit import TimeLimits

logger = logging.getLogger(__name__)

FORKING = "celery.concurrency.prefork"

#: seconds that one question of the keeper may take; a heartbeat that gets no answer is tried again soon
PATIENCE = 1.0

#: seconds that a stopping worker tries to report what it still knows
LAST_WORDS = 3.0


class LeaseKeeping(bootsteps.StartStopStep):
    """Starts between the pool and the consumer; stops when the last body is over (Celery stops steps too early)."""

    label = "Tidegate"
    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self.desk: Runtime = open_runtime(binding(worker.app.conf.broker_transport_options[OPTION]))
        self.forks = worker.pool_cls.__module__ == FORKING
        self.pool = worker.pool_cls.__module__.rpartition(".")[
            2
        ]  # as Celery calls them: prefork, thread, solo
        lease_ms = round(self.desk.settings.worker.lease * 1000)
        self.stamp = Stamp.create(fence_limit_ns(lease_ms), MODE_CHILDREN if self.forks else MODE_MAIN)
        self.desk.leases.tenure = Tenure(self.stamp)
        self.kennel = Kennel(self.stamp)
        self.keeper: Keeper | None = None
        self._finished = False
        self._limits = TimeLimits()
        if self.forks:
            if worker.pool_start_method != "fork":
                raise ImproperlyConfigured(
                    f"worker_pool_start_method is {worker.pool_start_method!r}; Tidegate's prefork children need 'fork'"
                )
            signals.worker_process_init.connect(self._in_child, weak=False)

    # --- in a child

    def _in_child(self, **options: Any) -> None:
        guard.start(self.stamp, current_process().index)
        signals.task_prerun.connect(_gate, weak=False)

    # --- in the main process

    def start(self, worker: Any) -> None:
        """OSError if the watchdog cannot be started, StoreRefused if the store must not be used."""
        desk, settings = self.desk, self.desk.settings
        for warning in settings.warnings:
            logger.warning("%s", warning)
        self.store = Store(_hasty(settings), broker_url(settings))
        bodies: Bodies = ChildBodies(worker.pool, _pid_of) if self.forks else OwnBodies()
        self.heartbeat = Heartbeat(
            self.store, desk.worker_id, desk.leases, bodies, lambda: self._announce(worker)
        )
        drain = Drain(
            desk.leases, bodies, settings.worker.drain_timeout, lambda jobs: self._replace(worker, jobs)
        )
        self.keeper = Keeper(
            self.store,
            desk.leases,
            self.heartbeat,
            Flusher(self.store, desk.worker_id, desk.leases),
            bodies,
            drain,
            self.kennel,
            Reviver(settings),
            self.stamp,
            settings.worker.heartbeat,
        )
        self.kennel.start()
        self.heartbeat.register()
        desk.hurry = self.keeper.hurry
        self.keeper.start()
        drain.install()
        signals.worker_shutdown.connect(self._on_shutdown, sender=worker, weak=False)
        atexit.register(self._finish)

    def register_with_event_loop(self, worker: Any, hub: Any) -> None:
        """Celery asks the steps in reverse order, so the pool makes its handlers after this."""
        if self.forks:
            hub.call_soon(self._limits.attach, worker.pool._pool, hub)

    def stop(self, worker: Any) -> None:
        """Nothing yet: Celery stops this step before it waits for the pool, and running bodies need their leases."""

    terminate = stop

    def _announce(self, worker: Any) -> None:
        """Make this worker known, durably. Opens the store with its start checks, if that has not been done."""
        settings = self.desk.settings
        self.desk.store.register(
            WorkerInfo(
                self.desk.worker_id,
                worker.hostname,
                self.desk.pid,
                tuple(queue for queue in worker.app.amqp.queues.consume_from),
                worker.concurrency,
                settings.fleet.release,
                self.pool,
            ),
            own_texts(worker.app.tasks),
        )
        self._on_known()

    def _on_known(self) -> None:
        self.desk.registered = True  # claims may begin, or go on

    def _replace(self, worker: Any, jobs: tuple[ClaimedJob, ...]) -> None:
        """End this process and its bodies, and hand the given attempts back (handback.py)."""
        self.kennel.stop()
        if worker.pidlock:
            worker.pidlock.release()
        ended = tuple(iter(self.desk.leases.take_outcomes, ()))
        outcomes = tuple(outcome for batch in ended for outcome in batch) + tuple(map(hand_back, jobs))
        replace_process(Testament(self.desk.settings, self.store.url, self.desk.worker_id, outcomes))

    def _on_shutdown(self, **options: Any) -> None:
        self._finish()

    def _finish(self) -> None:
        """The last report and a polite exit; at the worker's end or, after a cold stop, at the interpreter's."""
        if self.keeper is None or self._finished or os.getpid() != self.desk.pid:
            return
        if self.desk.leases.running():
            return  # bodies outlive us: the watchdog ends them, their leases end by themselves
        self._finished = True
        if not self.keeper.stop(LAST_WORDS):
            logger.error(
                "the store did not take the last reports: those jobs run again when their leases end"
            )
        try:
            self.store.unregister(self.desk.worker_id)
        except TidegateError as error:
            logger.warning("this worker could not take its leave: %s", error)
        self.kennel.stop()
        self.store.close()


def _gate(task: Any = None, **options: Any) -> None:
    """In a child, in front of every body (receiver of `task_prerun`)."""
    ref = ends.attempt_ref(task.request)
    if ref is not None:
        guard.admit(str(ref))


def _pid_of(ref: LeaseRef) -> int | None:
    """The child that runs this attempt; None if none has accepted it."""
    while True:
        try:
            return next((request.worker_pid for request in state.active_requests if request.ref == ref), None)
        except RuntimeError:
            continue  # the main loop changed the set meanwhile


def _hasty(settings: Settings) -> Settings:
    """The same store, asked with little patience."""
    return replace(settings, fleet=replace(settings.fleet, enqueue_timeout=PATIENCE))
