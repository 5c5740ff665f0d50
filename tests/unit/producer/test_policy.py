"""Order of DESIGN §11: file, decorator, Celery's own options, defaults; a call's own option before all of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.config import ConfigError, Sections, Settings, TaskSettings, TimeoutSettings
from tidegate.domain.job import Effect
from tidegate.worker.policy import overruled, policy


def task(decorator: dict[str, Any] | None = None, *, early: bool = False, **options: Any) -> Any:
    return SimpleNamespace(
        tidegate=decorator, _tidegate_acks_early=early, time_limit=None, expires=None, **options
    )


def settings(**said: Any) -> Settings:
    return replace(Settings(), tasks=Sections({"t": TaskSettings(**said)}))


def test_without_a_task_object_the_file_speaks() -> None:
    assert policy(settings(effect=Effect.NONE), "t").effect is Effect.NONE
    assert policy(Settings(), "t").effect is None


def test_the_file_wins_over_the_decorator() -> None:
    found = policy(
        settings(effect=Effect.NONE),
        "t",
        task({"effect": "at_most_once", "timeouts": {"attempt": "5s"}, "queue": "q"}),
    )
    assert (found.effect, found.timeouts.attempt, found.queue) == (Effect.NONE, 5.0, "q")


def test_early_acknowledgement_means_at_most_once_unless_something_else_is_said() -> None:
    assert policy(Settings(), "t", task(early=True)).effect is Effect.AT_MOST_ONCE
    assert policy(Settings(), "t", task({"effect": "idempotent"}, early=True)).effect is Effect.IDEMPOTENT


@pytest.mark.parametrize("decorator", [{"efect": "none"}, {"effect": "twice"}, {"timeouts": {"attempt": 0}}])
def test_a_wrong_decorator_is_reported_with_its_task(decorator: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        policy(Settings(), "t", task(decorator))
    assert "the decorator of task 't'" in str(raised.value)
    assert raised.value.faults[0].where.startswith("tasks.t.")


def test_celerys_own_options_yield_to_the_file_but_not_a_callers() -> None:
    said = TaskSettings(timeouts=TimeoutSettings(attempt=60.0, queue=60.0))
    one = SimpleNamespace(time_limit=30, expires=20)
    assert overruled(said, one, {"time_limit": 30, "expires": 20}) == {"time_limit": None, "expires": None}
    assert overruled(said, one, {"time_limit": 5, "expires": 6}) == {}
    assert overruled(TaskSettings(), one, {"time_limit": 30, "expires": 20}) == {}
    assert overruled(said, SimpleNamespace(), {}) == {}
