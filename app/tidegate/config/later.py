"""Sections that this release reads and checks but does not act on yet; `tidegate config check` says so in a warning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidegate.config.compound import or_word, table_of, words_of
from tidegate.config.field import optional, record, setting
from tidegate.config.kind import choice, duration, frequency, integer, name, number, size, text
from tidegate.config.quantity import Rate
from tidegate.config.sections import Sections


class Scope(Enum):
    """For whom a dependency closes."""

    FLEET = "fleet"
    TENANT = "tenant"


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
