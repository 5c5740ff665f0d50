"""Fixtures of the command tests: a fleet on a test clock, checked whole at the end of each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from tests.harness.server import Server
from tests.lua import leak  # noqa: F401  registers the check
from tests.lua.limits import Limits
from tests.lua.rig import Rig, settings
from tests.lua.truth import complaints

MakeRig = Callable[..., Rig]


@pytest.fixture
def make(shared_server: Server, client: redis.Redis, fleet: str) -> Iterator[MakeRig]:
    """Makes the fleet with the settings a test wants; a second call is a second process of it."""
    rigs: list[Rig] = []

    def make(**options: Any) -> Rig:
        rig = Rig(client, shared_server.url, settings(fleet, **options))
        rigs.append(rig)
        return rig

    yield make
    if rigs:
        dump = rigs[0].dump()
        found = (
            [*complaints(dump), *Limits(dump).forgotten(), *Limits(dump).exceeded()] if "meta" in dump else []
        )
        for rig in rigs:
            rig.close()
        assert not found, "\n".join(found)


@pytest.fixture
def rig(make: MakeRig) -> Rig:
    """A fleet without limits and one worker, `w1`."""
    rig = make()
    rig.worker()
    return rig
