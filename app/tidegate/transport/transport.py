"""kombu's Redis transport with our channel. Celery finds it by the setting `broker_transport`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from kombu.transport import redis as kombu_redis

from tidegate.transport.channel import Channel

Ticks = set[Callable[[], None]]


class Transport(kombu_redis.Transport):
    """Everything but the channel is kombu's: the poller, virtual queues, pidbox, events."""

    Channel = Channel
    driver_name = "tidegate"

    # a batch of kombu would write lists behind the store's back
    implements = kombu_redis.Transport.implements.extend(batch_publish=False)
    supports_batch_publish = False

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """As kombu, and the callback that an earlier connection left on the event loop goes (it never does there)."""
        loop.on_tick -= _ticks.pop(loop, set())
        before = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)
        _ticks[loop] = loop.on_tick - before


_ticks: WeakKeyDictionary[Any, Ticks] = WeakKeyDictionary()
