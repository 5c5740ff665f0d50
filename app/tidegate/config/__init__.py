"""L1: tidegate.toml and the environment become frozen settings; every fault is reported at once."""

from __future__ import annotations

from tidegate.config.core import (
    BrokerSettings,
    FleetSettings,
    OnFull,
    Pool,
    PriorityOrder,
    QueueSettings,
    TenantSettings,
    WorkerSettings,
)
from tidegate.config.fault import ConfigError, Fault
from tidegate.config.load import Report, inspect, load
from tidegate.config.model import Settings
from tidegate.config.quantity import Rate
from tidegate.config.sections import Sections
from tidegate.config.task import DEFAULT_TASK, TaskSettings, TimeoutSettings

__all__ = [
    "DEFAULT_TASK",
    "BrokerSettings",
    "ConfigError",
    "Fault",
    "FleetSettings",
    "OnFull",
    "Pool",
    "PriorityOrder",
    "QueueSettings",
    "Rate",
    "Report",
    "Sections",
    "Settings",
    "TaskSettings",
    "TenantSettings",
    "TimeoutSettings",
    "WorkerSettings",
    "inspect",
    "load",
]
