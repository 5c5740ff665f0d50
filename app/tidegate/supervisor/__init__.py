"""L5: workers, beats and the exporter of one machine, kept running by one process (`tidegate up`)."""

from __future__ import annotations

from tidegate.supervisor.errors import AlreadyUp
from tidegate.supervisor.post import Failure, Seen
from tidegate.supervisor.supervisor import SELF, Supervisor

__all__ = ["SELF", "AlreadyUp", "Failure", "Seen", "Supervisor"]
