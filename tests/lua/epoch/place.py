"""A fleet whose server can lose its last second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.harness.server import AofMark, Server
from tests.lua.rig import Rig, outcome, settings

from tidegate.domain.job import ClaimedJob, OutcomeKind, Settled
from tidegate.domain.states import Reason


@dataclass
class Place:
    """A fleet whose server can lose what was written since `remember()`."""

    server: Server
    rigs: list[Rig] = field(default_factory=list)
    mark: AofMark | None = None

    def rig(self, **options: Any) -> Rig:
        rig = Rig(self.server.client(), self.server.url, settings("fleet", **options))
        self.rigs.append(rig)
        return rig

    def remember(self) -> None:
        self.mark = self.server.aof_mark()

    def come_back(self) -> None:
        """kill -9, without what came after `remember()`, and start."""
        if self.mark is None:
            self.remember()
        assert self.mark
        self.server.kill9_losing_since(self.mark)
        self.server.start()
        self.mark = None
        for rig in self.rigs:
            rig.client.connection_pool.disconnect()


def done(job: ClaimedJob, kind: OutcomeKind = OutcomeKind.OK) -> Settled:
    return Settled(job.head, outcome(job, kind, Reason.ERROR))
