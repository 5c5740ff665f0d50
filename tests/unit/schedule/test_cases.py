"""Every agreed answer of cases/schedules.json."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.schedule import DstFold, DstGap
from tidegate_beat.semantics import Cron, InvalidSchedule, Zone, parse

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "cases" / "schedules.json").read_text("utf-8")
)["cases"]
#: Five fields, by every rule of the dialect, and yet refused in the file for being ten: its line break was lost.
DAMAGED = {"1 1 1 1 1"}

FIRES = [case for case in CASES if "expect" in case]
REFUSED = [case for case in CASES if "refused" in case and case["name"] not in DAMAGED]


def test_each_case_is_one_of_these() -> None:
    assert len(FIRES) + len(REFUSED) + len(DAMAGED) == len(CASES) == 162


@pytest.mark.parametrize("case", FIRES, ids=lambda case: case["name"])
def test_fires(case: dict[str, Any]) -> None:
    cron = Cron.of(
        parse(case["expr"]),
        Zone.named(case["timezone"]),
        DstGap(case["dst_gap"]),
        DstFold(case["dst_fold"]),
    )
    wanted = [datetime.fromisoformat(text) for text in case["expect"]]
    after = datetime.fromisoformat(case["after"])

    assert [fire.at for fire in islice(cron.fires(after), len(wanted))] == wanted

    at = after
    for expected in wanted:
        fire = cron.next_after(at)
        assert fire is not None
        at = fire.at
        assert at == expected
    assert [fire.at for fire in cron.between(after, wanted[-1])] == wanted


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_refusals(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Cron.of(parse(case["expr"]), Zone.named(case["timezone"]))
    message = str(refusal.value)
    assert case["refused"].lower() in message.lower()
    assert refusal.value.hint
    assert message.isprintable()
    assert message.isascii()


def test_ten_fields_are_refused_and_five_are_not() -> None:
    with pytest.raises(InvalidSchedule, match="ten fields"):
        parse("1 1 1 1 1\n1 1 1 1 1")
    assert parse("1 1 1 1 1").text == "1 1 1 1 1"
