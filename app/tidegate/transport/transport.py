"""kombu's Redis transport with our channel. Celery finds it by the setting `broker_transport`."""

from __future__ import annotations

import itertools
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
        """As kombu, with a cheaper look at each turn of the event loop, of which a task takes three.

        kombu registers every socket again at each turn, and leaves its callback on the loop when the connection is
        lost. Here a socket is registered when it is not, and all of them once in a while, whatever the books say.
        """
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
            every = next(turns) % _REGISTER_EVERY == 0
            for fd in cycle._fd_to_chan:
                known = readers.get(fd)
                if (every or known is None or known[0] is not on_readable) and fd not in cycle._paused_brpop:
                    loop.add_reader(fd, on_readable, fd)

        return look


#: turns of the event loop between two registrations of sockets that are registered already
_REGISTER_EVERY = 64

_ticks: WeakKeyDictionary[Any, Ticks] = WeakKeyDictionary()
