"""The leak check: a fleet that has run empty leaves only keys whose declared lifetime allows it.

It runs at the end of every test with the fixture `fleet`, in whatever process has imported this module.
"""

from __future__ import annotations

from typing import Any

import redis
from tests.harness import leak
from tests.lua.truth import kind_of

from tidegate.store.keyspace import Keyspace
from tidegate.store.script import load

#: what may stay while a worker is still registered or a resource still waits for an instant
_WHILE_ALIVE = {"workers", "winfo", "timers"}
_SWEEPS = 40


@leak.register
def leftovers(client: redis.Redis, fleet: str) -> list[str]:
    """One sentence for each key that no job needs any more. Silent while the fleet has jobs."""
    prefix = Keyspace(fleet).prefix
    if not client.exists(f"{prefix}meta") or next(iter(client.scan_iter(f"{prefix}job:*", count=1000)), None):
        return []
    _sweep(client, prefix)
    found = []
    for raw in client.scan_iter(f"{prefix}*", count=1000):
        name = raw.decode()[len(prefix) :]
        kind = kind_of(name)
        if kind is None:
            found.append(f"{name}: no kind of key that store/keyspace.py declares")
        elif not kind.lifetime.startswith(("fleet", "ttl")) and name not in _WHILE_ALIVE:
            found.append(f"{name}: should live {kind.lifetime}")
        elif kind.lifetime.startswith("ttl") and client.ttl(raw) == -1:
            found.append(f"{name}: should have a TTL")
    return found


def _sweep(client: redis.Redis, prefix: str) -> None:
    """What beat and the workers do about once a second."""
    run = client.hget(f"{prefix}meta", "run")
    for request in range(1, _SWEEPS):
        arguments: list[Any] = ["leak-check", request, run, 100]
        client.eval(load("promote").source, 1, prefix, *arguments)
        if not next(iter(client.scan_iter(f"{prefix}pass:*", count=1000)), None):
            return
