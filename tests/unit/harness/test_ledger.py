"""Who wrote an entry, in a container whose session leader is outside."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from tests.harness import ledger, procfs


def test_a_leader_outside_of_the_container_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = procfs.stat(os.getpid())
    assert mine is not None
    monkeypatch.setattr(ledger, "stat", lambda _: replace(mine, session=0))
    entry = ledger.decode(ledger.compose("begin", info={}))
    assert (entry.process, entry.worker) == (mine.id, mine.id)
