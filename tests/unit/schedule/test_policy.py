"""DST policies, one row for each rule; the agreed cases hold many more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tidegate.config.schedule import CronSeconds, DstFold, DstGap
from tidegate_beat.semantics import Cron, Note, Zone, parse

NEW_YORK = "America/New_York"


def fires(
    text: str,
    zone: str,
    start: str,
    end: str,
    gap: str = "auto",
    fold: str = "auto",
    seconds: str | None = None,
) -> list[str]:
    expression = parse(text, cron_seconds=CronSeconds(seconds) if seconds else None)
    cron = Cron.of(expression, Zone.named(zone), DstGap(gap), DstFold(fold))
    span = cron.between(datetime.fromisoformat(start), datetime.fromisoformat(end))
    return [str(fire).partition("[")[0] for fire in span]


@pytest.mark.parametrize(
    ("text", "gap", "expected"),
    [
        ("30 2 * * *", "skip", []),
        ("30 2 * * *", "gap_end", ["03:00:00-04:00"]),
        ("30 2 * * *", "shift", ["03:30:00-04:00"]),
        ("30 2 * * *", "auto", ["03:00:00-04:00"]),
        ("0 2,3 * * *", "shift", ["03:00:00-04:00"]),
        ("15,45 2,3 * * *", "skip", ["03:15:00-04:00", "03:45:00-04:00"]),
        ("15,45 2,3 * * *", "gap_end", ["03:00:00-04:00", "03:15:00-04:00", "03:45:00-04:00"]),
        ("15,45 2,3 * * *", "shift", ["03:15:00-04:00", "03:45:00-04:00"]),
        ("30 2,3 * * *", "shift", ["03:30:00-04:00"]),
        ("15 1,2 * * *", "shift", ["01:15:00-05:00", "03:15:00-04:00"]),
        ("59 2 * * *", "gap_end", ["03:00:00-04:00"]),
        ("*/30 2 * * *", "auto", []),
        ("*/30 2 * * *", "shift", ["03:00:00-04:00", "03:30:00-04:00"]),
        ("10 */2 * * *", "auto", ["00:10:00-05:00"]),
        ("0 3 * * *", "shift", ["03:00:00-04:00"]),
    ],
)
def test_gap(text: str, gap: str, expected: list[str]) -> None:
    got = fires(text, NEW_YORK, "2026-03-07T23:59:59-05:00", "2026-03-08T03:59:59-04:00", gap)
    assert got == [f"2026-03-08T{time}" for time in expected]


@pytest.mark.parametrize(
    ("text", "fold", "expected"),
    [
        ("30 1 * * *", "first", ["01:30:00-04:00"]),
        ("30 1 * * *", "second", ["01:30:00-05:00"]),
        ("30 1 * * *", "both", ["01:30:00-04:00", "01:30:00-05:00"]),
        ("30 1 * * *", "auto", ["01:30:00-04:00"]),
        ("0 1,2 * * *", "second", ["01:00:00-05:00", "02:00:00-05:00"]),
        ("0,30 0-2 * * *", "first", ["00:30:00-04:00", "01:00:00-04:00", "01:30:00-04:00", "02:00:00-05:00"]),
        (
            "0,30 0-2 * * *",
            "second",
            ["00:30:00-04:00", "01:00:00-05:00", "01:30:00-05:00", "02:00:00-05:00"],
        ),
        ("59 * * * *", "auto", ["00:59:00-04:00", "01:59:00-04:00", "01:59:00-05:00"]),
    ],
)
def test_fold(text: str, fold: str, expected: list[str]) -> None:
    got = fires(text, NEW_YORK, "2026-11-01T00:00:00-04:00", "2026-11-01T02:00:00-05:00", fold=fold)
    assert got == [f"2026-11-01T{time}" for time in expected]


def test_a_day_that_was_left_out() -> None:
    """Samoa had no 30 December 2011; the change was also New Year's nearest, where tables of years meet."""
    span = ("2011-12-29T12:00:00-10:00", "2011-12-31T20:00:00+14:00")
    apia = "Pacific/Apia"
    assert fires("0 9 * * *", apia, *span) == ["2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"]
    assert fires("0 9 * * *", apia, *span, gap="skip") == ["2011-12-31T09:00:00+14:00"]
    assert fires("0 9 30 * *", apia, *span, gap="shift") == ["2011-12-31T09:00:00+14:00"]
    assert fires("0 */6 * * *", apia, *span) == [
        "2011-12-29T18:00:00-10:00",
        *(f"2011-12-31T{hour}:00:00+14:00" for hour in ("00", "06", "12", "18")),
    ]


def test_a_fold_on_new_years_eve() -> None:
    """Dhaka set its clocks back at the end of 2009: 23:00 to 23:59 of 31 December came twice."""
    span = ("2009-12-31T22:00:00+07:00", "2010-01-01T01:00:00+06:00")
    assert fires("30 23 * * *", "Asia/Dhaka", *span) == ["2009-12-31T23:30:00+07:00"]
    assert fires("30 23 * * *", "Asia/Dhaka", *span, fold="second") == ["2009-12-31T23:30:00+06:00"]
    assert fires("30 23 * * *", "Asia/Dhaka", *span, fold="both") == [
        "2009-12-31T23:30:00+07:00",
        "2009-12-31T23:30:00+06:00",
    ]


def test_seconds_in_a_gap() -> None:
    span = ("2026-03-08T01:59:58-05:00", "2026-03-08T03:00:02-04:00")
    assert fires("* * 2 * * *", NEW_YORK, *span, gap="gap_end", seconds="first") == [
        "2026-03-08T03:00:00-04:00"
    ]
    assert fires("* * 2 * * *", NEW_YORK, *span, gap="shift", seconds="first") == [
        f"2026-03-08T03:00:0{second}-04:00" for second in range(3)
    ]


def test_the_start_itself_is_never_among_the_fires() -> None:
    cron = Cron.of(parse("30 2 * * *"), Zone.named(NEW_YORK))
    at = datetime(2026, 3, 7, 12, tzinfo=UTC)
    for expected in ("03-08 07:00:00", "03-09 06:30:00"):
        fire = cron.next_after(at)
        assert fire is not None
        assert f"{fire.at:%m-%d %H:%M:%S}" == expected
        at = fire.at
    later = cron.next_after(datetime(2026, 3, 8, 6, 59, 59, 999_999, tzinfo=UTC))
    assert later is not None
    assert later.at == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert list(cron.between(later.at, later.at)) == []


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        # in the hour after a gap, a shifted fire is still to come, and comes once
        ("30 2 * * *", NEW_YORK, "2026-03-08T03:10:00-04:00", "2026-03-08T03:30:00-04:00"),
        ("30 2 * * *", NEW_YORK, "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"),
        # at 01:45 the 01:10 of the first pass is over, and that of the second to come
        ("10 1 * * *", NEW_YORK, "2026-11-01T01:45:00-04:00", "2026-11-01T01:10:00-05:00"),
        ("10 1 * * *", NEW_YORK, "2026-11-01T01:10:00-05:00", "2026-11-02T01:10:00-05:00"),
        # Kiritimati left out 31 December 1994; the shifted fire lies in the next year, also of UTC
        ("0 18 31 12 *", "Pacific/Kiritimati", "1995-01-01T14:30:00+14:00", "1995-01-01T18:00:00+14:00"),
    ],
)
def test_a_start_within_a_change(text: str, zone: str, after: str, expected: str) -> None:
    cron = Cron.of(parse(text), Zone.named(zone), DstGap.SHIFT, DstFold.BOTH)
    assert str(cron.next_after(datetime.fromisoformat(after))) == f"{expected}[{zone}]"


def test_notes_say_what_was_done() -> None:
    zone = Zone.named(NEW_YORK)

    def notes(text: str, gap: DstGap, fold: DstFold, after: datetime, end: datetime) -> list[Note]:
        return [fire.note for fire in Cron.of(parse(text), zone, gap, fold).between(after, end)]

    spring = (datetime(2026, 3, 7, 12, tzinfo=UTC), datetime(2026, 3, 9, 12, tzinfo=UTC))
    autumn = (datetime(2026, 10, 31, 12, tzinfo=UTC), datetime(2026, 11, 2, 12, tzinfo=UTC))
    assert notes("30 2 * * *", DstGap.GAP_END, DstFold.BOTH, *spring) == [Note.GAP_END, Note.NONE]
    assert notes("30 2 * * *", DstGap.SHIFT, DstFold.BOTH, *spring) == [Note.SHIFTED, Note.NONE]
    assert notes("30 1 * * *", DstGap.SKIP, DstFold.BOTH, *autumn) == [
        Note.FOLD_FIRST,
        Note.FOLD_SECOND,
        Note.NONE,
    ]


def test_the_end_of_the_calendar_is_an_end_and_not_an_error() -> None:
    for text in ("0 0 1 1 *", "* * * * *", "0 0 L * *"):
        cron = Cron.of(parse(text), Zone.named("Asia/Shanghai"))
        assert cron.next_after(datetime(9999, 12, 31, 23, tzinfo=UTC)) is None
        assert cron.next_after(datetime(9998, 6, 1, tzinfo=UTC)) is None
        assert cron.next_after(datetime(9996, 6, 1, tzinfo=UTC)) is not None
        start = cron.next_after(datetime(1, 1, 1, tzinfo=UTC))
        assert start is not None
        assert start.at.year in (1900, 1901)


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="naive"):
        Cron.of(parse("0 0 * * *"), Zone.named("UTC")).next_after(datetime(2026, 1, 1))
