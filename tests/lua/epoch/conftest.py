"""Fixtures: a fleet whose server can lose its last second, and one worker in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.fixtures import OwnServer
from tests.lua.epoch.place import Place
from tests.lua.limits import Limits
from tests.lua.rig import Rig
from tests.lua.truth import complaints


@pytest.fixture
def place(own_server: OwnServer) -> Iterator[Place]:
    place = Place(own_server(options={"appendonly": "yes"}))
    yield place
    if place.rigs and "meta" in (dump := place.rigs[0].dump()):
        found = [*complaints(dump), *Limits(dump).forgotten()]
        assert not found, "\n".join(found)
    for rig in place.rigs:
        rig.close()


@pytest.fixture
def rig(place: Place) -> Rig:
    rig = place.rig()
    rig.worker()
    return rig
