"""The dialect: what is read, how it is spelled again, what is refused and with which hint."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise
from time import perf_counter

import pytest

from tidegate.config.schedule import CronSeconds
from tidegate.domain.errors import TidegateError
from tidegate_beat.semantics import Cron, InvalidSchedule, Zone, parse

START = datetime(2026, 2, 1, tzinfo=UTC)  # a Sunday


def first(text: str, count: int, seconds: CronSeconds | None = None) -> list[str]:
    cron = Cron.of(parse(text, cron_seconds=seconds, schedule_id="daily-report"), Zone.named("UTC"))
    return [f"{fire.at:%m-%d %H:%M:%S}" for fire in islice(cron.fires(START), count)]


def days(text: str, count: int) -> list[str]:
    return [moment.partition(" ")[0] for moment in first(f"0 12 {text}", count)]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 9 * * *", "0 9 * * *"),
        ("  0\t9 * * *\n", "0 9 * * *"),
        ("0 9 * JAN,mar Mon-FRI", "0 9 * 1,3 1-5"),
        ("0 9 * NOV-FEB FRI-MON", "0 9 * 1,2,11,12 0,1,5,6"),
        ("0 22-2 * * *", "0 0-2,22,23 * * *"),
        ("50-10/10 0 * * *", "0,10,50 0 * * *"),
        ("*/15 * * * *", "*/15 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("*,5 * * * *", "* * * * *"),
        ("5,* * * * *", "0-59 * * * *"),
        ("*/30,7 * * * *", "*/30,7 * * * *"),
        ("7,*/30 * * * *", "0,7,30 * * * *"),
        ("0/15 * * * *", "0-45/15 * * * *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * fri#2,L7", "0 0 * * 5#2,L0"),
        ("0 0 * * Lfri", "0 0 * * L5"),
        ("0 0 l,15w,3 * *", "0 0 3,15W,L * *"),
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
        ("*/60 */24 * * *", "*/60 */24 * * *"),
        ("05 007 * * *", "5 7 * * *"),
    ],
)
def test_canonical_spelling(text: str, canonical: str) -> None:
    expression = parse(text)
    assert expression.text == canonical
    assert parse(canonical) == expression


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("R * * * *", "minute", "not reproducible; write H"),
        ("R(0-9) * * * *", "minute", "not reproducible; write H"),
        ("@reboot", "cron", "the names are @hourly"),
        ("@daily 5", "cron", "not in the dialect"),
        ("@every 5m", "cron", 'use every = "90s"'),
        ("*/0 * * * *", "minute", "zero step"),
        ("*/00 * * * *", "minute", "zero step"),
        ("*/61 * * * *", "minute", "step larger than the field"),
        ("0 */25 * * *", "hour", "step larger than the field"),
        ("0 0 */32 * *", "day-of-month", "step larger than the field"),
        ("0 0 * */13 *", "month", "step larger than the field"),
        ("0 0 * * */8", "day-of-week", "step larger than the field"),
        ("*/x * * * *", "minute", "step 'X' is not a number"),
        ("*/ * * * *", "minute", "step '' is not a number"),
        ("H/61 * * * *", "minute", "step larger than the field"),
        ("H(0-9)/20 * * * *", "minute", "step larger than the field"),
        ("H(9-0) * * * *", "minute", "empty range"),
        ("H5 * * * *", "minute", "write H, H/15"),
        ("0 0 LW * *", "day-of-month", "roll = previous"),
        ("0 0 WL * *", "day-of-month", "roll = previous"),
        ("0 0 L-3 * *", "day-of-month", "not in the dialect"),
        ("0 0 W * *", "day-of-month", "15W"),
        ("0 0 29W * *", "day-of-month", "W above 28"),
        ("0 0 0W * *", "day-of-month", "out of range"),
        ("0 0 1-5W * *", "day-of-month", "not a number"),
        ("0 0 * * 5L", "day-of-week", "write L5"),
        ("0 0 * * FRIL", "day-of-week", "write LFRI"),
        ("0 0 * * L", "day-of-week", "L5 for the last Friday"),
        ("0 0 * * L8", "day-of-week", "out of range"),
        ("0 0 * * 1#0", "day-of-week", "1#1 to 1#5"),
        ("0 0 * * 1#6", "day-of-week", "no sixth week"),
        ("0 0 * * 8", "day-of-week", "allowed are 0 to 7"),
        ("0 0 * * 15W", "day-of-week", "not a number"),
        ("0 0 1#2 * *", "day-of-month", "not a number"),
        ("L * * * *", "minute", "not a number"),
        ("? * * * *", "minute", "write *"),
        ("0 0 ?/2 * *", "day-of-month", "write */2"),
        ("0 0 * JANUARY *", "month", "three-letter names: JAN"),
        ("0 MON * * *", "hour", "not a number"),
        ("60 * * * *", "minute", "allowed are 0 to 59"),
        ("5- * * * *", "minute", "not a number"),
        ("1-2-3 * * * *", "minute", "not a number"),
        ("*-5 * * * *", "minute", "not a number"),
        ("+5 * * * *", "minute", "not a number"),
        ("\x00 * * * *", "minute", "not a number"),
        ("\uff11 * * * *", "cron", "ASCII digits only"),
        ("0 0 * * \u661f", "cron", "ASCII"),
        ("0\u30000 * * *", "cron", "ASCII white space only"),
        ("", "cron", "empty"),
        (" \t", "cron", "empty"),
        ("* * * *", "cron", "four fields instead of five"),
        ("*", "cron", "one field instead of five"),
        ("0 0 9 * * *", "cron", "cron_seconds"),
        ("0 0 9 * * * 2026", "cron", "seven fields instead of five"),
        ("* * * * *" + " " * 250, "cron", "too long (259 characters)"),
        ("TZ=UTC 0 0 * * *", "cron", "use timezone ="),
        ("0 0 31 2 *", "cron", "never fires"),
        ("0 0 31 4,6,9,11 *", "cron", "never fires"),
        ("0 0 30,31 2 *", "cron", "never fires"),
        ("0 0 */31 * 1#2", "cron", "never fires"),
    ],
)
def test_refusals(text: str, where: str, message: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        parse(text, schedule_id="x")
    said = refusal.value
    assert isinstance(said, TidegateError)
    assert (said.code, said.exit_code) == ("invalid_schedule", 4)
    assert said.where.startswith(where)
    assert message in str(said)
    assert "\n" not in str(said)
    assert said.as_dict()["hint"] == said.hint != ""


@pytest.mark.parametrize("text", ["0 0 30 2 *", "* * 31 2,4,6,9,11 *", "*/1 */1 31 2 */7", "0 0 31 11 ?"])
def test_what_never_fires_is_refused_in_under_100_ms(text: str) -> None:
    start = perf_counter()
    with pytest.raises(InvalidSchedule):
        parse(text)
    assert perf_counter() - start < 0.1


def test_256_characters_are_allowed() -> None:
    assert parse("0 0 * * *" + " " * 247).text == "0 0 * * *"


def test_seconds_stand_first_or_last_only_when_told() -> None:
    assert first("*/20 0 0 1 3 *", 3, CronSeconds.FIRST) == [
        "03-01 00:00:00",
        "03-01 00:00:20",
        "03-01 00:00:40",
    ]
    assert first("0 0 1 3 * 5,10", 2, CronSeconds.LAST) == ["03-01 00:00:05", "03-01 00:00:10"]
    assert first("0 0 L 3 * 5,10", 2, CronSeconds.LAST) == ["03-31 00:00:05", "03-31 00:00:10"]
    for where in CronSeconds:
        expression = parse("*/20 7 8 * * *", cron_seconds=where)
        assert parse(expression.text, cron_seconds=where) == expression
        with pytest.raises(InvalidSchedule, match="with cron_seconds there are six"):
            parse("0 9 * * *", cron_seconds=where)
        assert parse("@daily", cron_seconds=where) == parse("@daily")


def test_h_is_drawn_from_the_schedule_and_spelled_as_numbers() -> None:
    drawn = parse("H H H H H", schedule_id="daily-report")
    assert drawn == parse("H H H H H", schedule_id="daily-report")
    assert drawn == parse(drawn.text)
    assert drawn.text == "12 10 16 2 6"  # for ever: a change of this line moves people's schedules
    assert len({parse("H H * * *", schedule_id=f"s{i}").text for i in range(100)}) > 80
    minutes = {parse("H * * * *", schedule_id=f"s{i}").minute.values[0] for i in range(2000)}
    assert minutes == set(range(60))
    dates = {parse("0 0 H * *", schedule_id=f"s{i}").days.day_of_month.values[0] for i in range(2000)}
    assert dates == set(range(1, 29))


def test_h_with_steps_and_ranges() -> None:
    for i in range(50):
        quarters = parse("H/15 * * * *", schedule_id=f"s{i}").minute.values
        assert len(quarters) == 4
        assert {b - a for a, b in pairwise(quarters)} == {15}
        assert 10 <= parse("H(10-19) * * * *", schedule_id=f"s{i}").minute.values[0] <= 19
        tens = parse("H(0-29)/10 * * * *", schedule_id=f"s{i}").minute.values
        assert len(tens) == 3
        assert tens[-1] <= 29


def test_h_needs_a_schedule() -> None:
    with pytest.raises(InvalidSchedule, match="H needs a schedule's id"):
        parse("H * * * *")


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True),
        ("0,30 1,2 * * *", True),
        ("0 0-22 * * *", True),
        ("0-59 2 * * *", True),
        ("0 0-23 * * *", False),
        ("0 */2 * * *", False),
        ("*/20 1 * * *", False),
        ("* * * * *", False),
        ("0 0/1 * * *", False),
        ("0 5,* * * *", False),
        ("H H * * *", True),
        ("H/15 2 * * *", True),
    ],
)
def test_fixed_times_and_rhythms(text: str, fixed: bool) -> None:
    assert parse(text, schedule_id="s").names_fixed_times is fixed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # or, when neither starts with a star
        ("13 * 5", "02-06 02-13 02-20"),
        ("1-31 * 1", "02-01 02-02 02-03"),
        ("13 * 0-6", "02-01 02-02 02-03"),
        ("L * 1", "02-02 02-09 02-16 02-23 02-28"),
        ("15W * 1#1", "02-02 02-16 03-02 03-16"),
        ("10 * L5", "02-10 02-27 03-10 03-27"),
        ("5,* * 1", "02-01 02-02 02-03"),
        # and, when one does
        ("*/2 * 1", "02-09 02-23 03-09"),
        ("?,13 * 1", "02-02 02-09 02-16"),
        ("13 * */2", "06-13 08-13 09-13 10-13 12-13"),
        ("13 * *,5", "02-13 03-13"),
        ("L * */5", "05-31 07-31 01-31 02-28"),
        ("*/7 * 1#2", "06-08 02-08 03-08"),
        ("*/2 * L5", "02-27 03-27 05-29"),
        ("15W * */2", "09-15 10-15 12-15"),
        # marks
        ("15W * *", "02-16 03-16 04-15 05-15 06-15 07-15 08-14"),
        ("1W * *", "02-02 03-02 04-01 05-01 06-01 07-01 08-03"),
        ("28W 2 *", "02-27 02-26 02-28"),
        ("1W,L * *", "02-02 02-28 03-02 03-31"),
        ("* * 1#5,L5,3", "02-04 02-11 02-18 02-25 02-27 03-04 03-11 03-18 03-25 03-27 03-30"),
        ("* * 1#1,3#2", "02-02 02-11 03-02 03-11"),
        # steps in the week
        ("* * 1/2", "02-02 02-04 02-06 02-09"),
        ("* * 0-7/2", "02-01 02-03 02-05 02-07 02-08"),
        ("* * FRI-MON/2", "02-01 02-06 02-08"),
    ],
)
def test_day_rule(text: str, expected: str) -> None:
    assert days(text, len(expected.split())) == expected.split()


def test_a_day_that_comes_once_in_28_or_40_years() -> None:
    sunday = Cron.of(parse("0 0 29 2 */7"), Zone.named("Asia/Shanghai"))  # a Sunday, the only value of */7
    after = datetime(2072, 1, 1, tzinfo=UTC)
    assert [str(fire)[:10] for fire in islice(sunday.fires(after), 2)] == ["2088-02-29", "2128-02-29"]
    fifth = Cron.of(parse("0 0 */1 2 1#5"), Zone.named("Asia/Shanghai"))
    assert [str(fire)[:10] for fire in islice(fifth.fires(START), 2)] == ["2044-02-29", "2072-02-29"]
