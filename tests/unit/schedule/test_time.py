"""Elapsed time, single instants, the text form of RFC 9557, and schedules made from settings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.schedule import CronSeconds, DstGap, ScheduleSettings
from tidegate_beat.semantics import At, Every, FireTime, InvalidSchedule, Zone, instant, times

SHANGHAI = Zone.named("Asia/Shanghai")
UTC_ZONE = Zone.named("UTC")


def fire(text: str, zone: str) -> FireTime:
    return FireTime(datetime.fromisoformat(text).astimezone(UTC), Zone.named(zone))


@pytest.mark.parametrize(
    ("at", "zone", "text"),
    [
        ("2026-03-08T01:00:00Z", "Asia/Shanghai", "2026-03-08T09:00:00+08:00[Asia/Shanghai]"),
        ("2026-11-01T05:30:00Z", "America/New_York", "2026-11-01T01:30:00-04:00[America/New_York]"),
        ("2026-11-01T06:30:00Z", "America/New_York", "2026-11-01T01:30:00-05:00[America/New_York]"),
        ("2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:00:00+00:00[UTC]"),
        ("2026-01-01T00:00:00.25Z", "Asia/Kathmandu", "2026-01-01T05:45:00.250000+05:45[Asia/Kathmandu]"),
        ("1890-01-01T00:00:00Z", "Asia/Shanghai", "1890-01-01T00:00:00Z[Asia/Shanghai]"),
    ],
)
def test_text_form(at: str, zone: str, text: str) -> None:
    value = fire(at, zone)
    assert str(value) == text
    assert FireTime.parse(text) == value
    assert FireTime.parse(text).zone == value.zone


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Monrovia", "Asia/Kathmandu"]),
)
def test_text_form_both_ways(at: datetime, zone: str) -> None:
    value = FireTime(at.replace(tzinfo=UTC), Zone.named(zone))
    back = FireTime.parse(str(value))
    assert (back.at, back.zone) == (value.at, value.zone)
    assert str(back) == str(value)


def test_a_stored_time_keeps_its_instant_when_the_rules_of_its_zone_have_changed() -> None:
    stored = FireTime.parse("2026-03-08T09:00:00+07:00[Asia/Shanghai]")
    assert stored.at == datetime(2026, 3, 8, 2, tzinfo=UTC)
    with pytest.raises(InvalidSchedule, match="another offset then; that is 2026-03-08T10:00:00"):
        instant("2026-03-08T09:00:00+07:00[Asia/Shanghai]", "at")


def test_fires_compare_as_instants() -> None:
    assert fire("2026-03-08T01:00:00Z", "Asia/Shanghai") == fire("2026-03-08T01:00:00Z", "UTC")
    assert fire("2026-03-08T01:00:00Z", "Asia/Shanghai") < fire("2026-03-08T01:00:01Z", "UTC")


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-03-08", "2026-03-08T09:00:00", "2026-03-08 09:00:00Z", "2026-03-08T09:00Z", "20260308T090000Z",
        "2026-03-08T09:00:00+0800", "2026-02-30T09:00:00Z", "2026-03-08T25:00:00Z", "2026-03-08T09:00:00+25:00",
        "2026-03-08T09:00:00Z[Mars/Olympus]", "2026-03-08T09:00:00Z[UTC][u-ca=hebrew]", "2026-03-08T09:00:00Z[UTC",
        "\u0662026-03-08T09:00:00Z", "0001-01-01T00:00:00+08:00", "2026-03-08T09:00:00Z\n",
    ],
)  # fmt: skip
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        instant(text, "at")
    with pytest.raises(InvalidSchedule):
        FireTime.parse(text)


def test_a_stored_time_names_its_zone() -> None:
    with pytest.raises(InvalidSchedule, match="names no zone"):
        FireTime.parse("2026-03-08T09:00:00Z")


def test_every_counts_elapsed_time_from_its_anchor() -> None:
    anchor = datetime(2026, 3, 8, 6, 59, 30, tzinfo=UTC)
    every = Every.of(90, Zone.named("America/New_York"), anchor)
    got = [str(found)[11:25] for found in islice(every.fires(anchor - timedelta(days=9)), 3)]
    assert got == ["01:59:30-05:00", "03:01:00-04:00", "03:02:30-04:00"]
    assert [found.at for found in every.between(anchor, anchor + timedelta(minutes=3))] == [
        anchor + timedelta(seconds=90),
        anchor + timedelta(seconds=180),
    ]


@given(
    st.integers(1, 10**9),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)),
)
def test_every_is_exact(millis: int, anchor: datetime, start: datetime) -> None:
    anchor, start = anchor.replace(tzinfo=UTC), start.replace(tzinfo=UTC)
    every = Every.of(millis / 1000, UTC_ZONE, anchor)
    period = timedelta(milliseconds=millis)
    found = every.next_after(start)
    assert found is not None
    assert found.at > start
    assert (found.at - anchor) % period == timedelta()
    assert found.at == anchor or found.at - period <= start


def test_every_ends_with_the_calendar() -> None:
    late = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert Every.of(86400, UTC_ZONE).next_after(late) is None
    assert len(list(Every.of(20, UTC_ZONE).fires(late))) == 2


def test_every_needs_a_millisecond() -> None:
    with pytest.raises(InvalidSchedule, match="1ms"):
        Every.of(0.0004, UTC_ZONE)


def test_at_fires_once() -> None:
    moment = datetime(2026, 3, 8, 1, tzinfo=UTC)
    at = At(moment, SHANGHAI)
    second = timedelta(seconds=1)
    assert str(at.next_after(moment - second)) == "2026-03-08T09:00:00+08:00[Asia/Shanghai]"
    assert at.next_after(moment) is None
    assert [found.at for found in at.between(moment - second, moment)] == [moment]
    assert list(at.between(moment - 2 * second, moment - second)) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"cron": "0 9 * * *", "timezone": "Asia/Shanghai"}, "2026-03-08T09:00:00+08:00[Asia/Shanghai]"),
        ({"cron": "0 0 9 * * *", "cron_seconds": CronSeconds.FIRST}, "2026-03-08T09:00:00+00:00[UTC]"),
        ({"cron": "H H * * *"}, "2026-03-08T10:12:00+00:00[UTC]"),
        ({"every": 90.0}, "2026-03-08T01:00:00+00:00[UTC]"),
        ({"every": 90.0, "anchor": "2026-03-08T02:59:59Z"}, "2026-03-08T02:59:59+00:00[UTC]"),
        ({"at": "2026-03-08T09:00:00-04:00[America/New_York]"}, "2026-03-08T13:00:00+00:00[UTC]"),
        ({"at": "2026-03-08T12:00:00+08:00"}, "2026-03-08T04:00:00+00:00[UTC]"),
        (
            {"cron": "30 2 * * *", "timezone": "America/New_York", "dst_gap": DstGap.SHIFT},
            "2026-03-08T03:30:00-04:00[America/New_York]",
        ),
    ],
)
def test_a_schedule_from_its_settings(given: dict[str, Any], text: str) -> None:
    settings = ScheduleSettings(**given)
    found = times(settings, "daily-report").next_after(datetime(2026, 3, 8, 0, 59, 59, tzinfo=UTC))
    assert str(found) == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "says no time; write one of cron, every and at"),
        ({"cron": "0 9 * * *", "every": 5.0}, "has cron and every"),
        ({"every": 5.0, "cron_seconds": CronSeconds.LAST}, "cron_seconds: there is no cron"),
        ({"cron": "0 9 * * *", "anchor": "2026-03-08T00:00:00Z"}, "anchor: there is no every"),
        ({"every": 5.0, "anchor": "yesterday"}, "anchor: 'yesterday' is not an instant"),
        (
            {"at": "2026-03-08T09:00:00"},
            "at: '2026-03-08T09:00:00' is not an instant; write an instant with its offset",
        ),
        (
            {"at": "2026-03-08T09:00:00-05:00[America/New_York]"},
            "that is 2026-03-08T10:00:00-04:00[America/New_York]",
        ),
        (
            {"at": "2026-03-08T09:00:00Z", "timezone": "localtime"},
            "timezone: 'localtime' is not an IANA zone",
        ),
        ({"cron": "R 9 * * *"}, "minute field: R is not reproducible"),
    ],
)
def test_a_schedule_that_is_none(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        times(ScheduleSettings(**given), "s")
    assert message in str(refusal.value)
