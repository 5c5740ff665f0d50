"""`TIDEGATE_*` variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config import ConfigError, Pool, Settings, load
from tidegate.config.environment import variables


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tidegate.toml"
    path.write_text('[fleet]\nname = "file"\n[worker]\nconcurrency = 3\n[tenants.acme]\nweight = 2\n')
    return path


def test_variables_win_over_the_file(file: Path) -> None:
    environ = {
        "TIDEGATE_FLEET_NAME": "variable",
        "TIDEGATE_BROKER_URL": "redis://localhost:6379/0",
        "TIDEGATE_WORKER_CONCURRENCY": "8",
        "TIDEGATE_WORKER_POOL": "threads",
        "TIDEGATE_WORKER_LEASE": "20",
        "TIDEGATE_WORKER_QUEUES": " default , mail",
        "TIDEGATE_QUEUES_OPEN": "true",
        "TIDEGATE_QUEUES_DEFAULT_MAX_DEPTH": "7",
        "TIDEGATE_TENANTS_DEFAULT_MAX_CONCURRENCY": "unlimited",
        "TIDEGATE_RETRY_BUDGET_RATIO": "0.5",
        "HOME": "/nowhere",
    }
    settings = load(file, environ)
    assert settings.fleet.name == "variable"
    assert settings.broker.url == "redis://localhost:6379/0"
    assert (settings.worker.concurrency, settings.worker.pool) == (8, Pool.THREADS)
    assert settings.worker.lease == 20.0
    assert settings.worker.queues == ("default", "mail")
    assert settings.declares("mail")
    assert settings.queue("mail").max_depth == 7
    assert settings.tenant("acme").max_concurrency is None
    assert settings.tenant("acme").weight == 2.0
    assert settings.retry.budget.ratio == 0.5


def test_an_empty_variable_is_none(file: Path) -> None:
    assert load(file, {"TIDEGATE_FLEET_NAME": "", "TIDEGATE_CONFIG": ""}).fleet.name == "file"


def test_reserved_names_are_no_settings(file: Path) -> None:
    environ = {"TIDEGATE_ACTOR": "ops", "TIDEGATE_CONFIG": "elsewhere.toml", "TIDEGATE_TEST_ANYTHING": "1"}
    assert load(file, environ) == load(file, {})


def test_release_has_a_short_name(file: Path) -> None:
    assert load(file, {"TIDEGATE_RELEASE": "2026.3.1"}).fleet.release == "2026.3.1"


def test_lists_may_be_json(file: Path) -> None:
    assert load(file, {"TIDEGATE_FLEET_IMPORTS": '["a.b", "c"]'}).fleet.imports == ("a.b", "c")


def test_an_unknown_variable_is_a_fault(file: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file, {"TIDEGATE_BROKER_URI": "redis://localhost"})
    assert [str(fault) for fault in caught.value.faults] == [
        "TIDEGATE_BROKER_URI: unknown variable; did you mean TIDEGATE_BROKER_URL?"
    ]


def test_without_a_file_the_message_still_names_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(None, {"TIDEGATE_WORKER_POOL": "fork"})
    assert str(caught.value) == (
        'settings: 1 fault\n  TIDEGATE_WORKER_POOL: expected one of "prefork", "threads" or "solo" '
        '(gevent and eventlet cannot keep a lease), got "fork"; did you mean "prefork"?'
    )


def test_a_variable_below_something_that_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "tidegate.toml"
    path.write_text("worker = 5\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {"TIDEGATE_WORKER_POOL": "solo"})
    assert [str(fault) for fault in caught.value.faults] == ["worker (line 1): expected a table, got 5"]


def test_each_key_with_a_fixed_path_has_a_variable() -> None:
    known = variables(Settings)
    assert {"TIDEGATE_FLEET_NAME", "TIDEGATE_DLQ_RETENTION", "TIDEGATE_RETRY_BUDGET_WINDOW"} <= set(known)
    assert len({path for path, _ in known.values()}) == len(known) - 1  # TIDEGATE_RELEASE is a second name
