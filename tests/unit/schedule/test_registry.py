"""Schedules of the settings made ready: what is an edit of their times, what is wrong, which job a fire has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.config import ConfigError, load
from tidegate.domain.fire import utc_text
from tidegate.domain.identity import fire_operation_id
from tidegate_beat.registry import Schedule, job, schedules

ROOT = Path(__file__).resolve().parents[3]


def ready(tmp_path: Path, text: str) -> dict[str, Schedule]:
    path = tmp_path / "tidegate.toml"
    path.write_text(f'[fleet]\nname = "f"\n{text}')
    return schedules(load(path, {}))


def one(tmp_path: Path, *lines: str, name: str = "s") -> Schedule:
    said = "\n".join(lines)
    return ready(tmp_path, f'[schedules.{name}]\ntask = "t"\n{said}\n')[name]


def test_the_page_about_schedules_shows_one_that_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "schedules.md").read_text("utf-8")
    found = ready(tmp_path, re.findall(r"```toml\n(.*?)```", page, re.S)[0])
    assert found["daily-report"].kwargs == {"region": "cn"}
    assert found["daily-report"].spec.deadline == 3 * 3_600_000


@pytest.mark.parametrize(
    ("before", "after", "edited"),
    [
        ('cron = "0 9 * * MON-FRI"', 'cron = "0 9 * * 1,2,3,4,5"', False),
        ('cron = "@daily"', 'cron = "0 0 * * *"', False),
        ('cron = "0 9 * * *"', 'cron = "0 10 * * *"', True),
        ('cron = "0 9 * * *"', 'cron = "0 9 * * *"\ntimezone = "Asia/Shanghai"', True),
        ('cron = "30 2 * * *"', 'cron = "30 2 * * *"\ndst_gap = "gap_end"', False),
        ('cron = "30 2 * * *"', 'cron = "30 2 * * *"\ndst_gap = "shift"', True),
        (
            'every = "90s"',
            'every = "1.5m"\nkwargs = { a = 1 }\ncatch_up = "all"\npass_fire_time = true',
            False,
        ),
        ('every = "90s"', 'every = "90s"\ntimezone = "Asia/Shanghai"', False),
        ('every = "90s"', 'every = "90s"\nanchor = "2026-01-01T00:00:01Z"', True),
        ('at = "2026-03-08T09:00:00+08:00"', 'at = "2026-03-08T01:00:00Z"', False),
        ('at = "2026-03-08T09:00:00Z"', 'at = "2026-03-08T09:00:01Z"', True),
        ('every = "1d"', 'cron = "@daily"', True),
    ],
)
def test_an_edit_is_one_of_the_times(tmp_path: Path, before: str, after: str, edited: bool) -> None:
    assert (one(tmp_path, before).digest != one(tmp_path, after).digest) == edited


def test_everything_that_is_wrong_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        ready(
            tmp_path,
            '[schedules.a]\ntask = "t"\ncron = "0 9 31 2 *"\n'
            '[schedules."b c"]\ntask = "t"\ncron = "0 9 * * *"\ntimezone = "Asia/Shangai"\n'
            '[schedules.c]\ntask = "t"\nat = "tomorrow"\n'
            f'[schedules.d]\ntask = "t"\nevery = "1m"\nargs = ["{"x" * 2**20}"]\n',
        )
    found = [(fault.where, fault.line) for fault in caught.value.faults]
    assert found == [
        ("schedules.a.cron", 5),
        ('schedules."b c".timezone', 9),
        ("schedules.c.at", 12),
        ("schedules.d", 13),
    ]
    assert "never fires" in caught.value.faults[0].what
    assert "did you mean Asia/Shanghai?" in caught.value.faults[1].what
    assert "more than the 1048576 allowed" in caught.value.faults[3].what


def test_the_queue_is_the_schedules_or_the_tasks_or_the_default(tmp_path: Path) -> None:
    head = '[queues.slow]\n[queues.fast]\n[tasks.t]\nqueue = "slow"\n'
    text = '[schedules.{0}]\ntask = "{1}"\nevery = "1m"\n{2}\n'
    found = ready(
        tmp_path,
        head
        + text.format("a", "t", 'queue = "fast"')
        + text.format("b", "t", "")
        + text.format("c", "other", ""),
    )
    assert [found[name].queue for name in "abc"] == ["fast", "slow", "default"]


def test_a_fire_has_one_name_for_ever(tmp_path: Path) -> None:
    """Written down, because a store that outlives a release holds these names."""
    assert utc_text(1_772_931_600_000) == "2026-03-08T01:00:00.000Z"
    name = fire_operation_id("f", "s", "2026-03-08T01:00:00.000Z")
    assert name == "f2e68e98-5234-50fa-a3f7-b2ac796d04bc"
    path = tmp_path / "tidegate.toml"
    for zone in ("UTC", "Asia/Shanghai"):
        schedule = one(tmp_path, 'every = "1h"', f'timezone = "{zone}"')
        made = job(load(path, {}), schedule, 1_772_931_600_000)
        assert (made.operation_id, made.known_operation, made.deadline_ms) == (name, True, 0)
        assert b"logical_fire_time" not in made.envelope


def test_what_the_task_section_says_holds_for_its_fires(tmp_path: Path) -> None:
    schedule = one(
        tmp_path,
        'every = "1h"',
        "[tasks.t]",
        'effect = "at_most_once"',
        'timeouts = { queue = "1m", attempt = "5s" }',
    )
    made = job(load(tmp_path / "tidegate.toml", {}), schedule, 0)
    assert (made.effect.value, made.queue_timeout_ms, made.attempt_timeout_ms) == (
        "at_most_once",
        60_000,
        5_000,
    )
