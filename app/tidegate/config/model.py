"""The settings: frozen values whose attributes mirror the sections of tidegate.toml (DESIGN §11).

Durations are seconds (float), sizes are bytes (int). `Settings()` is what a fleet without a file runs with.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.config.core import (
    BrokerSettings,
    FleetSettings,
    QueueSettings,
    TenantSettings,
    WorkerSettings,
)
from tidegate.config.field import named, record, setting
from tidegate.config.kind import flag
from tidegate.config.later import (
    DependencySettings,
    DlqSettings,
    ObservabilitySettings,
    RetrySettings,
)
from tidegate.config.schedule import ScheduleSettings
from tidegate.config.sections import Sections
from tidegate.config.task import TaskSettings
from tidegate.config.writer import as_mapping

_NOTHING_SAID = TaskSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything; see `tidegate.config.load`. Where settings came from does not count when they are compared."""

    fleet: FleetSettings = record(FleetSettings, "The fleet as a whole.")
    broker: BrokerSettings = record(BrokerSettings, "The store and the result backend.")
    worker: WorkerSettings = record(WorkerSettings, "Every worker of the fleet.")
    queues: Sections[QueueSettings] = named(
        QueueSettings, "Queues; `default` always exists and is the base of the others.", inherits=True
    )
    queues_open: bool = setting(
        flag(), False, "Accept queues that no section names; they are like `default`.", at=("queues", "open")
    )
    tenants: Sections[TenantSettings] = named(
        TenantSettings,
        "Limits per tenant; `default` is the base of the others and serves unknown names.",
        inherits=True,
    )
    dependencies: Sections[DependencySettings] = named(
        DependencySettings, "What tasks call: limits shared by the fleet.", later=True
    )
    tasks: Sections[TaskSettings] = named(TaskSettings, "Per task name; the file wins over the decorator.")
    retry: RetrySettings = record(RetrySettings, "Retries of the whole fleet.", later=True)
    schedules: Sections[ScheduleSettings] = named(ScheduleSettings, "What beat starts.")
    dlq: DlqSettings = record(DlqSettings, "Dead letters.", later=True)
    observability: ObservabilitySettings = record(ObservabilitySettings, "Metrics and logs.")
    source: Path | None = field(
        default=None, compare=False
    )  #: the file, absolute; None: defaults and environment
    root: Path = field(default=Path(), compare=False)  #: what relative paths in the settings are relative to
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def queue(self, name: str) -> QueueSettings:
        """The queue's own section, else `[queues.default]`. Whether it may be used: `declares`."""
        return self.queues.get(name) or self.queues["default"]

    def declares(self, queue: str) -> bool:
        """True if jobs may be sent to the queue."""
        return self.queues_open or queue in self.queues

    def tenant(self, name: str) -> TenantSettings:
        """The tenant's own section, else `[tenants.default]`."""
        return self.tenants.get(name) or self.tenants["default"]

    def task(self, name: str) -> TaskSettings:
        """What the file says about the task; None where it says nothing (lay it over the decorator's with `over`)."""
        return self.tasks.get(name) or _NOTHING_SAID

    @property
    def data_dir(self) -> Path:
        """Directory of the embedded server, absolute."""
        return (self.root / self.broker.data_dir).absolute()

    def digest(self) -> str:
        """SHA-256 of all values (hex); equal for settings that say the same, wherever they came from."""
        canonical = json.dumps(as_mapping(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()
