"""Fleets of producers' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.harness.server import Server
from tests.integration.producer.shop import Shop

SMALL = "[queues.default]\nmax_depth = 1000\n[queues.small]\nmax_depth = 3\n"


class MakeShop(Protocol):
    def __call__(self, more: str = "", *, server: Server | None = None, fleet: str = "") -> Shop: ...


@pytest.fixture
def make_shop(tmp_path: Path, shared_server: Server, fleet: str) -> Iterator[MakeShop]:
    """Makes a fleet with settings of the test's own; on the shared server if no other is given."""
    made: list[Shop] = []
    name = fleet

    def make(more: str = "", *, server: Server | None = None, fleet: str = "") -> Shop:
        made.append(Shop.open(tmp_path, server or shared_server, name, more, fleet))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def shop(make_shop: MakeShop) -> Shop:
    """A fleet with the queues `default` and `small` (three jobs)."""
    return make_shop(SMALL)
