"""What an operator sees of a snapshot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.test_diagnosis import COUNTS, NOW, SNAPSHOT

from tidegate.cli.view import lines
from tidegate.domain.job import Pressure
from tidegate.store import TenantNow

BUSY = replace(
    COUNTS, depth=75, limit=100, waiting=60, running=4, retry_waiting=3, dead=2, pressure=Pressure.YELLOW,
    capacity_age_ms=1_500, limit_age_ms=60_000,
)  # fmt: skip


def text(**changes: object) -> str:
    return "\n".join(lines(replace(SNAPSHOT, **changes)))  # type: ignore[arg-type]


def test_a_queue_in_a_line() -> None:
    row = next(line for line in lines(replace(SNAPSHOT, queues={"mail": BUSY})) if line.startswith("mail"))
    assert row.split() == ["mail", "█" * 9 + "░" * 3, "75/100", "60", "4", "3", "2", "1.5", "s", "60.0", "s"]


def test_tenants_with_what_they_may_run() -> None:
    shown = text(tenants=(TenantNow("crawler", 3, 3), TenantNow("acme", 1, None)))
    assert "3 of 3" in shown
    assert [line.split()[0] for line in shown.splitlines() if "█" in line] == ["crawler", "acme"]


def test_no_escape_codes_where_there_is_no_terminal() -> None:
    assert "\x1b" not in text(queues={"mail": BUSY})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workers": ()}, "no worker: nothing that waits is started"),
        ({"beat_ms": 0}, "no beat process"),
        ({"beat_ms": NOW - 6_000}, "no beat process"),
        ({"failed": 3}, "3 failed attempts wait for a decision"),
        ({"held_ms": 1_500}, "waits 1.5 s for its workers"),
        ({"queues": {"default": replace(COUNTS, paused=True)}}, "0/100 paused"),
        ({}, "1 worker, 4 slots"),
    ],
)
def test_what_stands_still_is_said(changes: dict[str, object], said: str) -> None:
    assert said in text(**changes)
    if changes:
        assert said not in text()
