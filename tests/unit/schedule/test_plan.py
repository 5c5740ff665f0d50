"""What becomes of due fires: emitted within the grace, and by policy when an outage or a full queue made them late."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.schedule import CatchUp
from tidegate.domain.fire import Cursor, Decided, Fate, Missed, instant_of, milliseconds_of
from tidegate_beat.semantics import At, Cron, Every, Times, Zone, parse
from tidegate_beat.semantics.plan import COUNTED, GRACE, MOST, Plan, Spec, plan, plan_one

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
UTC_ZONE = Zone.named("UTC")
START = milliseconds_of(datetime(2026, 3, 1, tzinfo=UTC))


def every(seconds: float) -> Every:
    return Every.of(seconds, UTC_ZONE)


def cron(text: str) -> Cron:
    return Cron.of(parse(text), UTC_ZONE)


def spec(times: Times, catch_up: CatchUp = CatchUp.LATEST, **fields: int) -> Spec:
    known = {"window": 3 * DAY, "most": 10, "start_deadline": 2 * HOUR, **fields}
    return Spec(times, catch_up, **known)


HOURLY = spec(cron("0 * * * *"))


def shown(found: Plan) -> list[tuple[int, int, int, str, str]]:
    """(first, last, number, fate, detail) of each decision; times in seconds from the start."""
    return [
        (
            (one.first_ms - START) // SECOND,
            (one.at_ms - START) // SECOND,
            one.number,
            one.fate.value,
            str((int(one.detail) - START) // SECOND) if one.fate is Fate.COALESCED else one.detail,
        )
        for one in found.decided
    ]


def single(second: int, fate: str = "emitted", detail: str = "") -> tuple[int, int, int, str, str]:
    return second, second, 1, fate, detail


# -- on time


def test_nothing_is_due() -> None:
    assert plan_one(HOURLY, Cursor(START), START + 10 * MINUTE) == Plan((), START + HOUR)


def test_a_fire_is_due_at_its_time_and_never_before() -> None:
    assert plan_one(HOURLY, Cursor(START), START + HOUR - 1) == Plan((), START + HOUR)
    found = plan_one(HOURLY, Cursor(START), START + HOUR)
    assert found == Plan((Decided(START + HOUR, Fate.EMITTED, START + HOUR),), START + 2 * HOUR)


def test_a_cursor_in_the_future_fires_nothing() -> None:
    """The server's clock went back."""
    assert plan_one(HOURLY, Cursor(START + 5 * HOUR), START + HOUR) == Plan((), START + 6 * HOUR)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_within_the_grace_everything_is_emitted_whatever_the_policy(catch_up: CatchUp) -> None:
    found = plan_one(spec(every(1), catch_up, most=1), Cursor(START), START + GRACE)
    assert shown(found) == [single(n) for n in range(1, 11)]
    assert found.next_ms == START + 11 * SECOND


def test_one_instant_fires_once() -> None:
    at = At(datetime(2026, 3, 1, 1, tzinfo=UTC) + timedelta(microseconds=700), UTC_ZONE)
    found = plan_one(spec(at), Cursor(START), START + HOUR)
    assert found == Plan((Decided(START + HOUR, Fate.EMITTED, START + HOUR),), None)
    assert plan_one(spec(at), Cursor(START + HOUR), START + DAY) == Plan((), None), "also with its 700 µs"
    assert plan_one(spec(at), Cursor(START + DAY), START + DAY) == Plan((), None), "written when it was over"


def test_many_schedules() -> None:
    found = plan(
        {"a": HOURLY, "b": spec(every(60))}, {"a": Cursor(START), "b": Cursor(START)}, START + MINUTE
    )
    assert {name: len(one.decided) for name, one in found.items()} == {"a": 0, "b": 1}


# -- after an outage


def test_latest_coalesces_the_others_into_the_last_one() -> None:
    found = plan_one(HOURLY, Cursor(START), START + 5 * HOUR + MINUTE)
    assert shown(found) == [
        (3_600, 4 * 3_600, 4, "coalesced", str(5 * 3_600)),
        single(5 * 3_600),
    ]
    assert found.next_ms == START + 6 * HOUR


def test_skip_misses_all_of_them() -> None:
    found = plan_one(replace(HOURLY, catch_up=CatchUp.SKIP), Cursor(START), START + 5 * HOUR + MINUTE)
    assert shown(found) == [(3_600, 5 * 3_600, 5, "missed", "catch_up")]


def test_all_emits_as_many_as_catch_up_max_the_latest_ones() -> None:
    hourly = replace(HOURLY, catch_up=CatchUp.ALL, most=3)
    found = plan_one(hourly, Cursor(START), START + 5 * HOUR + MINUTE)
    assert shown(found) == [
        (3_600, 2 * 3_600, 2, "missed", "catch_up_max"),
        *(single(n * 3_600) for n in (3, 4, 5)),
    ]
    rest = plan_one(hourly, Cursor(START + 3 * HOUR), START + 5 * HOUR + 2 * MINUTE)
    assert shown(rest) == [single(n * 3_600) for n in (4, 5)], "the next plan goes on where this one was cut"


@pytest.mark.parametrize("catch_up", [CatchUp.ALL, CatchUp.LATEST])
def test_what_is_older_than_the_window_is_missed(catch_up: CatchUp) -> None:
    hourly = replace(HOURLY, catch_up=catch_up, window=2 * HOUR + 30 * MINUTE)
    found = plan_one(hourly, Cursor(START), START + 5 * HOUR + MINUTE)
    assert shown(found)[0] == (3_600, 2 * 3_600, 2, "missed", "catch_up_window")
    assert shown(found)[-1] == single(5 * 3_600)
    assert sum(one.number for one in found.decided) == 5


def test_a_fire_whose_job_would_be_over_is_missed() -> None:
    found = plan_one(replace(HOURLY, deadline=HOUR), Cursor(START), START + 2 * HOUR + MINUTE)
    assert shown(found)[-1] == single(2 * 3_600)
    found = plan_one(replace(HOURLY, deadline=MINUTE), Cursor(START), START + 2 * HOUR + MINUTE)
    assert shown(found)[-1] == single(2 * 3_600, "missed", "deadline")


def test_the_year_that_a_clock_jumped_floods_nothing() -> None:
    found = plan_one(spec(every(1)), Cursor(START), START + 365 * DAY)
    assert Counter(one.fate for one in found.decided) == {
        Fate.MISSED: 1,
        Fate.COALESCED: 1,
        Fate.EMITTED: 12,  # the latest before the grace, and the grace
    }
    assert found.decided[0].number == COUNTED
    assert found.decided[0].detail == "catch_up_window"
    assert found.decided[0].at_ms == START + 362 * DAY - SECOND


def test_rare_fires_in_a_long_outage_are_found_from_the_end() -> None:
    dense = spec(cron("* 3 * * *"), CatchUp.ALL, window=900 * DAY, most=2)
    found = plan_one(dense, Cursor(START), START + 100 * DAY)
    assert [one.number for one in found.decided] == [100 * 60 - 2, 1, 1]
    last = START + 99 * DAY + 3 * HOUR + 59 * MINUTE
    assert [one.at_ms for one in found.decided[1:]] == [last - MINUTE, last]


def test_a_plan_has_an_end_and_the_next_one_goes_on() -> None:
    often = spec(every(0.01), CatchUp.ALL, most=100_000)
    found = plan_one(often, Cursor(START), START + 8 * SECOND)
    assert (len(found.decided), found.next_ms) == (MOST, START + (MOST + 1) * 10)
    late = plan_one(often, Cursor(START), START + 60 * SECOND)
    assert len(late.decided) == MOST
    assert late.next_ms == START + 60 * SECOND, "at once"


# -- a full queue


def waiting(since: int, until: int, at: int = 0) -> Cursor:
    return Cursor(START + at, START + since, START + until)


def test_a_fire_that_waits_for_room_was_not_missed_by_an_outage() -> None:
    skip = replace(HOURLY, catch_up=CatchUp.SKIP)
    now = START + 3 * HOUR + 30 * MINUTE
    found = plan_one(replace(skip, start_deadline=DAY), waiting(HOUR, now - START - SECOND), now)
    assert shown(found) == [single(n * 3_600) for n in (1, 2, 3)]


def test_it_waits_until_its_start_deadline() -> None:
    now = START + 3 * HOUR + 30 * MINUTE
    found = plan_one(HOURLY, waiting(HOUR, now - START - SECOND), now)
    assert shown(found) == [single(3_600, "missed", "start_deadline"), single(7_200), single(10_800)]


def test_a_fire_that_catching_up_emits_late_has_its_whole_time_to_wait() -> None:
    """Its queue has refused it since nine o'clock, not since one."""
    now = START + 10 * HOUR + 30 * MINUTE
    found = plan_one(HOURLY, waiting(9 * HOUR, now - START - SECOND), now)
    assert {one.fate for one in found.decided} == {Fate.EMITTED}


def test_no_more_wait_than_catch_up_max() -> None:
    now = START + 100 * MINUTE
    found = plan_one(spec(every(60), most=3), waiting(MINUTE, now - START - SECOND), now)
    assert shown(found) == [
        (60, 96 * 60, 96, "missed", "catch_up_max"),
        *(single(n * 60) for n in (97, 98, 99)),
        single(6000),
    ]


def test_an_outage_after_a_full_queue_is_an_outage() -> None:
    now = START + 6 * HOUR + 30 * MINUTE
    found = plan_one(replace(HOURLY, start_deadline=DAY), waiting(HOUR, 2 * HOUR + MINUTE), now)
    assert shown(found) == [
        single(3_600),
        single(7_200),
        (10_800, 18_000, 3, "coalesced", "21600"),
        single(21_600),
    ]


# -- whatever happens


@given(
    period=st.sampled_from([0.5, 1, 7, 60]),
    catch_up=st.sampled_from(CatchUp),
    most=st.integers(1, 20),
    window=st.integers(0, 10 * MINUTE),
    naps=st.lists(st.integers(1, 5 * MINUTE), min_size=1, max_size=12),
    taken=st.lists(st.integers(0, 40), max_size=12),
)
def test_every_fire_has_one_fate(
    period: float, catch_up: CatchUp, most: int, window: int, naps: list[int], taken: list[int]
) -> None:
    """Plans are taken in part, as when an emitter dies, and the next one goes on from the cursor that is there."""
    one = spec(every(period), catch_up, most=most, window=window)
    now, cursor, told = START, START, list[Decided]()
    for n, nap in enumerate(naps):
        now += nap
        decided = plan_one(one, Cursor(cursor), now).decided
        assert all(each.fate is Fate.EMITTED for each in decided if each.at_ms >= now - GRACE)
        part = decided[: taken[n]] if n < len(taken) else decided
        told += part
        cursor = part[-1].at_ms if part else cursor
    assert all(earlier.at_ms < later.first_ms for earlier, later in pairwise(told))
    due = list(one.times.between(instant_of(START), instant_of(cursor)))
    assert sum(each.number for each in told) == len(due)
    assert all(each.detail in {why.value for why in Missed} for each in told if each.fate is Fate.MISSED)
