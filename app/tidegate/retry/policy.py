"""The retry policy of a task, from what is said about it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tidegate.config import TaskSettings
from tidegate.config.task import DEFAULT_TASK
from tidegate.domain.backoff import RetryPolicy


def retry_policy(said: TaskSettings) -> RetryPolicy:
    """What is said, else the defaults (DESIGN §11). Without an interval, fixed backoff waits its base."""
    whole = said.over(DEFAULT_TASK)
    told: dict[str, Any] = {
        field.name: getattr(whole.retry, field.name, None) for field in fields(RetryPolicy)
    }
    told["step_timeout"] = whole.timeouts.step
    if told["interval"] is None:
        told["interval"] = told["base"]
    return RetryPolicy(**told)
