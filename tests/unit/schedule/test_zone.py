"""Zone names, and the stretches of constant offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from tidegate_beat.semantics import InvalidSchedule, Zone


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "utc", "UTC ", " UTC", "UTC\n", "localtime", "Factory", "posixrules", "posix/UTC", "right/UTC",
        "posix", "right",
        "/etc/localtime", "../UTC", "Asia/../UTC", "./UTC", "Asia", "Asia/", "/UTC", "Asia//Shanghai",
        "asia/shanghai", "Asia\\Shanghai", "Mars/Olympus", "tzdata.zi", "zone.tab", "leapseconds", "+08:00", "UTC+8",
        "\u4e0a\u6d77", "UTC\x00", "A" * 300,
    ],
)  # fmt: skip
def test_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="is not an IANA zone") as refusal:
        Zone.named(name)
    assert str(refusal.value).isprintable()
    assert str(refusal.value).isascii()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("asia/shanghai", "Asia/Shanghai"), ("utc ", "UTC"), ("America/NewYork", "America/New_York")],
)
def test_a_near_name_is_offered(name: str, meant: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"did you mean {meant}"):
        Zone.named(name)


def test_all_zones_of_the_database_are_known() -> None:
    names = available_timezones() - {"localtime", "Factory", "posixrules"}
    assert len(names) > 400
    for name in names:
        assert Zone.named(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Pyongyang", "Europe/Dublin",
        "Africa/Casablanca", "America/Caracas", "Asia/Dhaka", "Pacific/Kwajalein",
    ],
)  # fmt: skip
def test_stretches_tile_time_at_the_offsets_of_the_zone(name: str) -> None:
    """1992 to 2030: among them changes on New Year's eve (Dhaka 2009), and days that were left out (Apia 2011)."""
    zone, info = Zone.named(name), ZoneInfo(name)
    stretch = zone.stretch(datetime(1992, 6, 1))
    while stretch.end < datetime(2030, 1, 1):
        following = zone.stretch(stretch.end)
        assert following.start == stretch.end
        assert (following.before, stretch.after) == (stretch.offset, following.offset)
        for at in (stretch.start, stretch.end - timedelta(seconds=1)):
            assert at.replace(tzinfo=UTC).astimezone(info).utcoffset() == stretch.offset == zone.offset(at)
            assert zone.stretch(at) == stretch
        stretch = following
