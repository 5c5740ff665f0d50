"""L4: the bundled Valkey, started on demand and shared by all processes of one directory."""

from __future__ import annotations

from tidegate.embedded.control import Endpoint, State, Status, ensure, status, stop, stop_unused
from tidegate.embedded.errors import EmbeddedError

__all__ = ["EmbeddedError", "Endpoint", "State", "Status", "ensure", "status", "stop", "stop_unused"]
