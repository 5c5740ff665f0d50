"""Celery's table of queues, filled from the settings: all declared ones for routing, `worker.queues` for consuming."""

from __future__ import annotations

from typing import Any

from celery.app.amqp import AMQP, Queues

from tidegate.domain.errors import UnknownQueue
from tidegate.transport.binding import OPTION, binding, nearest


class FleetQueues(Queues):
    """A queue that is not declared is refused by name, with what may have been meant."""

    fleet_name = ""

    def new_missing(self, name: str) -> Any:
        settings = binding(self.fleet_name).settings
        if not settings.declares(name):
            raise UnknownQueue(name, nearest(name, settings))
        return super().new_missing(name)


class FleetAMQP(AMQP):
    """`Celery.amqp_cls` of an app with Tidegate."""

    queues_cls = FleetQueues

    def Queues(self, queues: Any, *args: Any, **options: Any) -> Any:  # noqa: N802 - Celery's name
        table = super().Queues(queues, *args, **options)
        table.fleet_name = self.app.conf.broker_transport_options[OPTION]
        consumed = binding(table.fleet_name).settings.worker.queues
        # without -Q a worker would consume everything that can be routed to
        table._default_consume_from = {name: table[name] for name in consumed}
        return table
