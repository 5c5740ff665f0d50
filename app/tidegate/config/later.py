"""Sections that this release reads and checks but does not act on yet; `tidegate config check` says so in a warning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidegate.config.compound import json_value, or_word, table_of, words_of
from tidegate.config.field import optional, record, setting
from tidegate.config.kind import choice, duration, flag, frequency, integer, name, number, size, text
from tidegate.config.quantity import Rate
from tidegate.config.sections import Sections


class Scope(Enum):
    """For whom a dependency closes."""

    FLEET = "fleet"
    TENANT = "tenant"


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


class LogFormat(Enum):
    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencySettings:
    """[dependencies.NAME]"""

    max_concurrency: int | None = optional(integer(0, 10**6), "Jobs that use it at once.")
    rate: Rate | None = optional(frequency(), "Job starts.")
    burst: int | None = optional(
        integer(1, 10**9), "Job starts that may come at once; left out: one second of the rate."
    )
    cost: Sections[Rate] = setting(table_of(frequency()), {}, "Budgets counted in units of a job's cost.")
    scope: Scope = setting(
        choice(Scope), "fleet", "Whether a 429 closes it for everyone or for the tenant that met it."
    )
    hosts: tuple[str, ...] = setting(
        words_of(name("a host name")), [], "Hosts by which a failed request is attributed to it."
    )
    default_close: float = setting(
        duration(0.001), "5s", "How long a 429 without Retry-After closes it; doubles to 60s."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBudgetSettings:
    """[retry.budget]"""

    ratio: float = setting(number(0, 1), 0.2, "Retries as a part of first attempts in the window.")
    min_per_second: float = setting(number(0, 1_000_000), 1, "Retries per second that are always allowed.")
    window: float = setting(duration(1.0), "60s", "The window.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """[retry]"""

    budget: RetryBudgetSettings = record(RetryBudgetSettings, "How much of the load retries may be.")
    max_amplification: int | None = optional(
        integer(1, 10**6), "Refuse tasks whose layers of retries multiply to more calls."
    )
    unknown_task_grace: float = setting(
        duration(0.0), "10m", "How long a task that no worker knows waits for a deploy."
    )


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
    calendar: str | None = optional(name("a calendar"), "Days on which the schedule fires.")
    dst_gap: DstGap = setting(choice(DstGap), "auto", "What a wall time that does not exist becomes.")
    dst_fold: DstFold = setting(choice(DstFold), "auto", "Which of two equal wall times fires.")
    catch_up: CatchUp = setting(choice(CatchUp), "latest", "What is done with fires missed during an outage.")
    catch_up_window: float = setting(duration(0.0), "3d", "How far back catching up goes.")
    catch_up_max: int = setting(integer(1, 100_000), 10, "How many fires catching up emits at most.")
    catch_up_rate: Rate = setting(frequency(), "1/s", "How fast catching up emits.")
    overlap: Overlap = setting(choice(Overlap), "skip", "What is done while the last run is unfinished.")
    start_deadline: float = setting(duration(0.001), "2h", "How long a fire may wait for a full queue.")
    deadline: float | None = optional(duration(0.001), "Deadline of the jobs, from the logical time.")
    spread: float = setting(duration(0.0), "0s", "Window over which enqueueing is spread.")
    pass_fire_time: bool = setting(flag(), False, "Pass the logical time to the task.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DlqSettings:
    """[dlq]"""

    retention: float | None = setting(
        or_word("none", duration(1.0)), "none", "How long dead letters are kept; none: for ever."
    )
    mask: tuple[str, ...] = setting(
        words_of(name("a pattern")), ["*password*", "*token*", "*secret*"], "Fields that are not shown."
    )
    archive_dir: str | None = optional(name("a directory"), "Where the oldest go when memory runs short.")
    max_bytes: int | None = optional(size(1), "Memory for dead letters.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservabilitySettings:
    """[observability]"""

    metrics_address: str = setting(
        text('"host:port"', r"(?:\[[0-9A-Fa-f:]+\]|[^\s:]+):\d{1,5}"),
        "127.0.0.1:9464",
        "Where the exporter listens.",
    )
    top_tenants: int = setting(integer(0, 10_000), 50, "Tenants with series of their own.")
    log_format: LogFormat = setting(choice(LogFormat), "auto", "Form of the logs.", later=True)
