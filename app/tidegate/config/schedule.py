"""[schedules.NAME]: what beat starts, and when (DESIGN §7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidegate.config.compound import json_value, table_of, words_of
from tidegate.config.field import optional, setting
from tidegate.config.kind import choice, duration, flag, frequency, integer, name, text
from tidegate.config.quantity import Rate
from tidegate.config.sections import Sections


class DstGap(Enum):
    AUTO = "auto"
    SKIP = "skip"
    GAP_END = "gap_end"
    SHIFT = "shift"


class DstFold(Enum):
    AUTO = "auto"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class CatchUp(Enum):
    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


class Overlap(Enum):
    ALLOW = "allow"
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL_RUNNING = "cancel_running"


class CronSeconds(Enum):
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSettings:
    """[schedules.NAME] (DESIGN §7)"""

    task: str | None = optional(name("a task name"), "Task to start.")
    args: tuple[Any, ...] = setting(words_of(json_value()), [], "Positional arguments.")
    kwargs: Sections[Any] = setting(table_of(json_value()), {}, "Keyword arguments.")
    tenant: str = setting(name("a tenant name"), "default", "Tenant of the jobs.")
    queue: str | None = optional(name("a queue name"), "Queue of the jobs, if not the task's.")
    cron: str | None = optional(
        text("a cron expression of at most 256 characters", r"\S.*", 256), "Cron expression."
    )
    cron_seconds: CronSeconds | None = optional(
        choice(CronSeconds), "Where a sixth field of the expression stands."
    )
    every: float | None = optional(duration(0.001), "Interval, in elapsed time.")
    anchor: str | None = optional(name("an instant"), "Instant that `every` counts from.")
    at: str | None = optional(name("an instant"), "One single instant.")
    timezone: str = setting(name("an IANA time zone"), "UTC", "Zone of the wall times.")
    calendar: str | None = optional(name("a calendar"), "Days on which the schedule fires.", later=True)
    dst_gap: DstGap = setting(choice(DstGap), "auto", "What a wall time that does not exist becomes.")
    dst_fold: DstFold = setting(choice(DstFold), "auto", "Which of two equal wall times fires.")
    catch_up: CatchUp = setting(choice(CatchUp), "latest", "What is done with fires missed during an outage.")
    catch_up_window: float = setting(duration(0.0), "3d", "How far back catching up goes.")
    catch_up_max: int = setting(integer(1, 100_000), 10, "How many fires catching up emits at most.")
    catch_up_rate: Rate = setting(frequency(), "1/s", "How fast catching up emits.", later=True)
    overlap: Overlap = setting(
        choice(Overlap),
        "skip",
        "What is done while the last run is unfinished.",
        later=True,
        acted_on=Overlap.ALLOW,
    )
    start_deadline: float = setting(duration(0.001), "2h", "How long a fire may wait for a full queue.")
    deadline: float | None = optional(duration(0.001), "Deadline of the jobs, from the logical time.")
    spread: float = setting(
        duration(0.0), "0s", "Window over which enqueueing is spread.", later=True, acted_on=0.0
    )
    pass_fire_time: bool = setting(flag(), False, "Pass the logical time to the task.")
