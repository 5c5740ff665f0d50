"""When the append-only file holds what the server has answered."""

from __future__ import annotations

import redis

from .wait import wait_until


def wait_written(client: redis.Redis) -> None:
    """Until every write answered so far has been handed to the kernel, and so survives kill -9 of the server.

    With `appendfsync everysec` a server answers before it writes while an fsync is going on (for up to two seconds),
    so a kill -9 can lose acknowledged writes even though the machine lives on.
    """

    def written() -> bool:
        info = client.info("persistence")
        assert int(info["aof_enabled"]) == 1, "this server keeps no AOF: options={'appendonly': 'yes'}"
        return int(info["aof_buffer_length"]) == 0

    wait_until(written, "the AOF buffer to be written")
