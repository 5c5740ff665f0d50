"""Celery's consumer, told that deliveries survive a reconnect, and naming the ends that have no request.

Found by running Celery 5.7: four ends happen before a request exists (undecodable, no task message, unknown task,
invalid), all of them look like a plain acknowledgement from below. And on a lost connection Celery throws away what
it has not started, because a broker would deliver it again; a lease stays with its process.
"""

from __future__ import annotations

import logging
from typing import Any

from celery.exceptions import ImproperlyConfigured
from celery.utils.time import humanize_seconds
from celery.worker.consumer import Consumer
from celery.worker.consumer.consumer import CONNECTION_ERROR, CONNECTION_RETRY_STEP
from celery.worker.state import maybe_shutdown

from tidegate.domain.job import LeaseRef
from tidegate.transport.binding import OPTION, binding
from tidegate.worker import control, ends
from tidegate.worker.ends import Ending
from tidegate.worker.runtime import open_runtime
from tidegate.worker.task import adopt_all

logger = logging.getLogger(__name__)

#: seconds between attempts to reach the store again: first, growth, most. Celery's own grow to half a minute
RECONNECT = (0.2, 0.3, 2.0)

FORKING = "celery.concurrency.prefork"

__all__ = ["FleetConsumer", "control"]


def _spare(hub: Any) -> Any:
    """Celery's prefork pool takes the pipes of all idle children from the event loop at each of its turns, with a
    system call for each; here only those that are in it."""
    remove_writer = hub.remove_writer

    def remove(fd: int) -> None:
        if fd in hub.writers:
            remove_writer(fd)

    hub.remove_writer = remove
    return hub


class FleetConsumer(Consumer):
    """`worker_consumer` of an app with Tidegate."""

    def __init__(self, *args: Any, app: Any, pool: Any = None, hub: Any = None, **options: Any) -> None:
        fleet = binding(app.conf.broker_transport_options[OPTION])
        if hub is None:
            raise ImproperlyConfigured(
                "Tidegate needs Celery's event loop, which gevent and eventlet replace; use prefork, threads or solo"
            )
        self.desk = open_runtime(fleet)
        self.desk.hub = _spare(hub)
        self.desk.forks = type(pool).__module__ == FORKING
        for queue in app.amqp.queues.consume_from:
            fleet.consume(queue)
        super().__init__(*args, app=app, pool=pool, hub=hub, **options)

    # --- connections

    def on_close(self) -> None:
        """A connection is lost, or the worker stops. Celery would forget what has not started; we keep it."""
        if self.pool:
            # a child that died meanwhile must be reaped before the event loop is set up again
            self.pool.maintain_pool()

    def ensure_connected(self, conn: Any) -> Any:
        first, growth, most = RECONNECT
        connected = conn.ensure_connection(
            self._on_connection_error,
            self.app.conf.broker_connection_max_retries,
            interval_start=first,
            interval_step=growth,
            interval_max=most,
            callback=maybe_shutdown,
        )
        self.first_connection_attempt = False
        self.broker_connection_retry_attempt = 0
        return connected

    def _on_connection_error(self, error: Exception, interval: float) -> None:
        self.broker_connection_retry_attempt += 1
        step = CONNECTION_RETRY_STEP.format(
            when=humanize_seconds(interval, "in", " "),
            retries=self.broker_connection_retry_attempt,
            max_retries=self.app.conf.broker_connection_max_retries,
        )
        logger.error(CONNECTION_ERROR, self.desk.settings.broker.shown_url, error, step)

    def stop(self) -> None:
        self.desk.leases.draining = True  # whatever still arrives is given back
        super().stop()

    # --- tasks and queues

    def update_strategies(self) -> None:
        adopt_all(self.app)
        super().update_strategies()

    # --- ends without a request

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        self._end(message, ends.undeliverable(exc))
        super().on_decode_error(message, exc)

    def on_unknown_message(self, body: Any, message: Any) -> None:
        self._end(message, ends.undeliverable(ValueError("no message of a task")))
        super().on_unknown_message(body, message)

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._end(message, ends.unknown_task(str(exc.args[0]) if exc.args else ""))
        super().on_unknown_task(body, message, exc)

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._end(message, ends.undeliverable(exc))
        super().on_invalid_task(body, message, exc)

    def _end(self, message: Any, ending: Ending) -> None:
        self.desk.leases.end(ending.outcome(LeaseRef.parse(message.delivery_tag)))
