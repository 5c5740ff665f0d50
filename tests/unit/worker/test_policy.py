"""What the code of a task says about retries: the decorator, over Celery's options, over nothing."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, Task

from tidegate.config import Settings, TaskSettings
from tidegate.config.reader import Reading
from tidegate.config.task import RetryPolicySettings
from tidegate.domain.backoff import Backoff, Jitter
from tidegate.domain.job import Effect
from tidegate.worker.policy import ACKS_EARLY, celery_retry, own, own_texts, policy

FIXED, EXPONENTIAL = Backoff.FIXED, Backoff.EXPONENTIAL


def made(**options: Any) -> Task:
    app = Celery("options", set_as_current=False)

    @app.task(name="t", shared=False, **options)
    def body() -> None:
        """Nothing."""

    app.finalize()
    return app.tasks["t"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, {}),
        ({"max_retries": 1}, {"max_retries": 1}),
        ({"max_retries": 0}, {"max_retries": 0}),
        ({"max_retries": None}, {"max_retries": 10_000}),
        ({"retry_kwargs": {"max_retries": 7}}, {"max_retries": 7}),
        ({"max_retries": 2, "retry_kwargs": {"max_retries": 7}}, {"max_retries": 7}),
        ({"default_retry_delay": 30}, {"kind": FIXED, "interval": 30.0, "jitter": Jitter.NONE}),
        (
            {"autoretry_for": (OSError,), "retry_backoff": True},
            {"kind": EXPONENTIAL, "base": 1.0, "cap": 600.0, "jitter": Jitter.FULL},
        ),
        (
            {"autoretry_for": (OSError,), "retry_backoff": 5, "retry_backoff_max": 60, "retry_jitter": False},
            {"kind": EXPONENTIAL, "base": 5.0, "cap": 60.0, "jitter": Jitter.NONE},
        ),
        ({"retry_backoff": 900}, {"kind": EXPONENTIAL, "base": 900.0, "cap": 900.0, "jitter": Jitter.FULL}),
        ({"max_retries": "many", "default_retry_delay": timedelta(1)}, {}),
        ({"max_retries": float("nan"), "default_retry_delay": float("inf")}, {}),
        ({"max_retries": 10**12}, {"max_retries": 10_000}),
        (
            {"retry_backoff": False, "default_retry_delay": 1},
            {"kind": FIXED, "interval": 1.0, "jitter": Jitter.NONE},
        ),
    ],
)
def test_celerys_options(options: dict[str, Any], said: dict[str, Any]) -> None:
    assert celery_retry(made(**options)) == RetryPolicySettings(**said)


def test_a_base_class_says_it_for_its_tasks() -> None:
    class Patient(Task):  # type: ignore[misc]
        max_retries = 9

    assert celery_retry(made(base=Patient)).max_retries == 9
    assert celery_retry(made(base=Patient, max_retries=2)).max_retries == 2


def test_the_order_is_file_decorator_celery() -> None:
    task = made(
        max_retries=5, default_retry_delay=8, tidegate={"retry": {"max_retries": 2}, "effect": "none"}
    )
    assert own("t", task).retry == RetryPolicySettings(
        kind=FIXED, interval=8.0, jitter=Jitter.NONE, max_retries=2
    )
    said = policy(Settings(), "t", task)
    assert (said.retry.max_retries, said.effect) == (2, Effect.NONE)


def test_acks_early_is_at_most_once_unless_the_decorator_says_otherwise() -> None:
    early, told = made(), made(tidegate={"effect": "idempotent"})
    for task in (early, told):
        setattr(task, ACKS_EARLY, True)
    assert (own("t", early).effect, own("t", told).effect) == (Effect.AT_MOST_ONCE, Effect.IDEMPOTENT)


def test_what_goes_to_the_store_can_be_read_again() -> None:
    task = made(max_retries=5, retry_backoff=2, tidegate={"timeouts": {"attempt": "30s"}})
    texts = own_texts({"t": task, "plain": made(), "celery.chord": task, "tidegate.finalize": task})
    assert texts.keys() == {"t", "plain"}
    assert texts["plain"] == ""
    reading = Reading(TaskSettings)
    assert reading.build(TaskSettings, json.loads(texts["t"])) == own("t", task)
    assert reading.faults == []


def test_a_wrong_decorator_says_nothing() -> None:
    assert own_texts({"t": made(tidegate={"retri": {}})}) == {"t": ""}
