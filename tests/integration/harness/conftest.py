from __future__ import annotations

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.server import Server


@pytest.fixture
def own_broker(own_server: OwnServer) -> Server:
    return own_server()
