"""Remote control of a worker, where Celery's own answer would not be true.

Importing this module (a worker's consumer does) replaces the command in Celery's registry.
"""

from __future__ import annotations

from typing import Any

from celery.worker.control import Panel, control_command, nok

from tidegate.domain.errors import UnknownQueue

_stock_add_consumer = Panel.data["add_consumer"]


@control_command(
    args=[("queue", str), ("exchange", str), ("exchange_type", str), ("routing_key", str)],
    signature="<queue> [exchange [type [routing_key]]]",
)
def add_consumer(state: Any, queue: str, *args: Any, **options: Any) -> Any:
    """Tell worker(s) to consume from task queue by name."""
    desk = getattr(state.consumer, "desk", None)
    if desk is not None:
        try:
            desk.fleet.consume(queue)
        except UnknownQueue as error:
            return nok(str(error))  # Celery's would say ok, and raise in the event loop afterwards
    return _stock_add_consumer(state, queue, *args, **options)
