"""Waiting for facts. The only module under tests/ that sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T],
    why: str | Callable[[], str],
    timeout: float = 10.0,
    interval: float = 0.02,
) -> T:
    """Call `predicate` until it returns something truthy, and return that.

    why: what was waited for, as a text or as a function called only at failure (so that it may describe the
    state then). timeout and interval are seconds. Raises AssertionError with `why` and the last value. An
    exception of
    the predicate is a failure at once: a predicate that may fail on the way must say so itself (see
    `quietly`).
    """
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            text = why() if callable(why) else why
            raise AssertionError(f"waited {timeout:g} s for: {text} (last value: {value!r})")
        time.sleep(interval)


def quietly(predicate: Callable[[], T], *expected: type[BaseException]) -> Callable[[], T | None]:
    """`predicate`, with the named exceptions meaning "not yet" (a server that is still starting, for
    example).
    """

    def attempt() -> T | None:
        try:
            return predicate()
        except expected:
            return None

    return attempt
