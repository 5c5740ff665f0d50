"""kombu's Redis transport with our channel. Celery finds it by the setting `broker_transport`.

What a worker does at each turn of its event loop, of which one job takes about three, is done here with less: kombu
looks at every channel, client and socket again, and registers every socket again, each time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from kombu.transport import redis as kombu_redis

from tidegate.transport.channel import Channel

#: turns of the event loop between two looks at everything, as kombu does it at each
THOROUGH = 64


class Poller(kombu_redis.MultiChannelPoller):
    """kombu's, with a short look at what changes between two turns: whether to send the next claim, or to subscribe."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = itertools.count()

    def on_poll_start(self) -> None:
        if next(self._turns) % THOROUGH == 0 or self._paused_brpop:
            super().on_poll_start()
            return
        for channel in self._channels:
            if not channel._in_poll and channel.active_queues and channel.qos.can_consume():
                self._register_BRPOP(channel)
            if not channel._in_listen and channel.active_fanout_queues:
                self._register_LISTEN(channel)


class Transport(kombu_redis.Transport):
    """Everything but the channel and the poller's haste is kombu's: virtual queues, pidbox, events."""

    Channel = Channel
    driver_name = "tidegate"

    # a batch of kombu would write lists behind the store's back
    implements = kombu_redis.Transport.implements.extend(batch_publish=False)
    supports_batch_publish = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cycle = Poller()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """As kombu; the callback that an earlier connection left on the event loop goes (it never does there)."""
        loop.on_tick -= _ticks.pop(loop, set())
        before = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)
        loop.on_tick -= loop.on_tick - before
        tick = self._tick(loop)
        loop.on_tick.add(tick)
        _ticks[loop] = {tick}

    def _tick(self, loop: Any) -> Callable[[], None]:
        cycle, readers, on_readable = self.cycle, loop.readers, self.on_readable
        turns = itertools.count()

        def look() -> None:
            cycle.on_poll_start()
            thorough = next(turns) % THOROUGH == 0
            for fd in cycle._fd_to_chan:
                known = readers.get(fd)
                if (
                    thorough or known is None or known[0] is not on_readable
                ) and fd not in cycle._paused_brpop:
                    loop.add_reader(fd, on_readable, fd)

        return look


_ticks: WeakKeyDictionary[Any, set[Callable[[], None]]] = WeakKeyDictionary()
