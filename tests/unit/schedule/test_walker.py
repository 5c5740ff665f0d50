"""Random expressions in 30 zones, held to the walker and to what must hold of any schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schedule.walker import ZONES, Drawn, changes, draw, walk

from tidegate.config.schedule import CronSeconds, DstFold, DstGap
from tidegate_beat.semantics import Cron, FireTime, InvalidSchedule, Zone, parse
from tidegate_beat.semantics.expression import Expression
from tidegate_beat.semantics.wall import Walls, walls

DAY = timedelta(days=1)
YEARS = [datetime(2020, 1, 1, tzinfo=UTC) + i * timedelta(hours=997) for i in range(95)]

gaps = st.sampled_from(["auto", "skip", "gap_end", "shift"])
folds = st.sampled_from(["auto", "first", "second", "both"])
zones = st.sampled_from(ZONES)
drawn_ones = st.integers(0, 2**48).map(lambda seed: draw(Random(seed)))


def read(drawn: Drawn) -> Expression | None:
    try:
        return parse(drawn.text)
    except InvalidSchedule as refusal:
        if not refusal.what.startswith("never fires"):
            raise
        return None


def held(drawn: Drawn, zone: str, start: datetime, end: datetime, gap: str, fold: str) -> int:
    wanted = walk(drawn, zone, start, end, gap, fold)
    expression = read(drawn)
    if expression is None:
        assert wanted == []
        return 0
    assert expression.names_fixed_times is drawn.fixed
    cron = Cron.of(expression, Zone.named(zone), DstGap(gap), DstFold(fold))
    got = [fire.at for fire in cron.between(start, end)]
    assert got == wanted, f"{drawn.text!r} in {zone}, {gap}, {fold}"
    return len(got)


@settings(max_examples=120, deadline=None)
@given(drawn_ones, zones, gaps, folds, st.data())
def test_near_a_change(drawn: Drawn, zone: str, gap: str, fold: str, data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(changes(zone) or tuple(YEARS)))
    start = change + data.draw(st.integers(-1500, 200)) * timedelta(minutes=1)
    held(drawn, zone, start, start + data.draw(st.integers(1, 2000)) * timedelta(minutes=1), gap, fold)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("zone", ZONES)
def test_near_every_change_of_eleven_years(zone: str) -> None:
    random = Random(zone)
    fires = 0
    for change in changes(zone) or tuple(YEARS[:20]):
        for gap, fold in [("auto", "auto"), ("gap_end", "second"), ("shift", "first"), ("skip", "both")]:
            fires += held(draw(random), zone, change - 1.5 * DAY, change + DAY, gap, fold)
    assert fires > 100


@settings(max_examples=150, deadline=None)
@given(drawn_ones, zones, gaps, folds, st.datetimes(datetime(2020, 1, 1), datetime(2030, 12, 31)))
def test_what_holds_of_any_schedule(drawn: Drawn, zone: str, gap: str, fold: str, naive: datetime) -> None:
    start = naive.replace(tzinfo=UTC)
    expression = read(drawn)
    if expression is None:
        return
    assert len(expression.text) > 256 or parse(expression.text) == expression
    cron = Cron.of(expression, Zone.named(zone), DstGap(gap), DstFold(fold))
    fires = list(islice(cron.fires(start), 25))
    assert fires
    assert fires[0].at > start
    assert all(a.at < b.at for a, b in pairwise(fires))

    # one by one gives the same as all at once
    at = start
    for fire in fires[:5]:
        assert cron.next_after(at) == fire
        at = fire.at

    # any cut gives the same
    end = fires[-1].at
    middle = fires[len(fires) // 2].at
    for cut in (middle, middle - timedelta(microseconds=1), start + (end - start) / 3):
        assert [*cron.between(start, cut), *cron.between(cut, end)] == fires

    # each fire is a wall time of the expression, or the note says what was done to it
    for fire in fires:
        back = FireTime.parse(str(fire))
        assert (back.at, back.zone) == (fire.at, fire.zone)
        wall = fire.at.astimezone(fire.zone.info).replace(tzinfo=None)
        assert drawn.matches(wall) or fire.note.name in ("GAP_END", "SHIFTED")
        assert gap != "skip" or drawn.matches(wall)


@settings(max_examples=60, deadline=None)
@given(drawn_ones, zones, st.data())
def test_folds(drawn: Drawn, zone: str, data: st.DataObject) -> None:
    """`both` is `first` and `second` together; without gaps in the span no policy for gaps matters."""
    expression = read(drawn)
    if expression is None:
        return
    start = data.draw(st.sampled_from(changes(zone) or tuple(YEARS))) - DAY
    spans = {
        fold: {
            fire.at
            for fire in Cron.of(expression, Zone.named(zone), DstGap.SKIP, fold).between(
                start, start + 2 * DAY
            )
        }
        for fold in (DstFold.FIRST, DstFold.SECOND, DstFold.BOTH)
    }
    assert spans[DstFold.BOTH] == spans[DstFold.FIRST] | spans[DstFold.SECOND]
    walls = [
        [at.astimezone(Zone.named(zone).info).replace(tzinfo=None) for at in spans[fold]]
        for fold in (DstFold.FIRST, DstFold.SECOND)
    ]
    assert sorted(walls[0]) == sorted(set(walls[0])) == sorted(walls[1])


@settings(max_examples=150, deadline=None)
@given(
    drawn_ones,
    st.sampled_from([None, *CronSeconds]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 12, 31)),
)
def test_two_ways_to_enumerate_wall_times_agree(
    drawn: Drawn, seconds: CronSeconds | None, start: datetime
) -> None:
    """What croniter answers is what the enumeration for marked days would have answered."""
    text = {None: "{}", CronSeconds.FIRST: "7,50 {}", CronSeconds.LAST: "{} */25"}[seconds].format(drawn.text)
    try:
        expression = parse(text, cron_seconds=seconds)
    except InvalidSchedule:
        return
    theirs, ours = walls(expression), Walls(expression, None)
    assert (theirs.engine is None) is not expression.days.plain
    at: datetime | None = start
    for _ in range(12):
        assert at is not None
        assert theirs.since(at) == ours.since(at)
        assert theirs.after(at) == ours.after(at)
        at = ours.after(at)


def test_wall_times_reach_over_forty_years() -> None:
    leap = parse("0 0 29 2 */7")
    for enumerated in (walls(leap), Walls(leap, None)):
        assert enumerated.after(datetime(2088, 2, 29)) == datetime(2128, 2, 29)


def test_since_counts_the_moment_itself_and_after_does_not() -> None:
    for enumerated in (walls(parse("5 * * * *")), Walls(parse("5 * * * *"), None)):
        at = datetime(2026, 1, 1, 0, 5)
        assert enumerated.since(at) == at
        assert enumerated.after(at) == at.replace(hour=1)
        assert enumerated.since(at.replace(microsecond=1)) == at.replace(hour=1)
        assert enumerated.after(at - timedelta(microseconds=1)) == at
