"""The hook for the leak check: a test that leaves a key without its declared lifetime fails.

The keyspace knows the lifetimes, so the store registers the check; the `fleet` fixture calls it at the end of
a test.
"""

from __future__ import annotations

from collections.abc import Callable

import redis

#: (client, fleet) -> one sentence per key that should not be there
LeakCheck = Callable[[redis.Redis, str], list[str]]

checks: list[LeakCheck] = []


def register(check: LeakCheck) -> LeakCheck:
    """Use as a decorator at module level of something that tests/conftest.py imports."""
    checks.append(check)
    return check


def complaints(client: redis.Redis, fleet: str) -> list[str]:
    return [line for check in checks for line in check(client, fleet)]
