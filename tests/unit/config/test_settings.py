"""Settings as the rest of the package sees them."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from math import inf
from pathlib import Path

import pytest

from tidegate.config import (
    DEFAULT_TASK,
    BrokerSettings,
    FleetSettings,
    OnFull,
    Pool,
    Rate,
    Settings,
    TaskSettings,
    TenantSettings,
    TimeoutSettings,
    inspect,
    load,
)
from tidegate.domain.job import Effect

WHOLE = Path(__file__).parent / "whole.toml"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tidegate.toml"
    path.write_text(text)
    return path


def test_the_file_of_the_design_says_what_it_says() -> None:
    settings = load(WHOLE, {})
    assert settings.fleet.imports == ("reports.tasks",)
    assert settings.worker.pool is Pool.PREFORK
    assert (settings.worker.lease, settings.worker.heartbeat) == (15.0, 3.0)
    assert settings.queue("default").max_depth == 10_000
    assert settings.queue("default").max_bytes == 256 * 2**20
    assert settings.queue("default").on_full is OnFull.REJECT
    assert settings.tenant("anybody").rate == Rate(micro=100_000, per_ms=1)
    assert settings.dependencies["openai"].cost["tokens"] == Rate(micro=1_500_000, per_ms=1)
    task = settings.task("reports.fetch")
    assert (task.queue, task.effect) == ("default", Effect.IDEMPOTENT)
    assert task.timeouts == TimeoutSettings(queue=600.0, attempt=30.0, step=300.0)
    assert settings.schedules["daily-report"].kwargs == {"region": "cn"}
    assert settings.source == WHOLE


def test_what_the_release_does_not_act_on_is_said() -> None:
    assert load(WHOLE, {}).warnings == (
        "queues.default.max_bytes (line 22): checked, but this release does not act on it yet",
        "queues.default.max_age (line 23): checked, but this release does not act on it yet",
        "queues.default.objective_age (line 24): checked, but this release does not act on it yet",
        "dependencies (line 35): checked, but this release does not act on this section yet",
        'tasks."reports.fetch".dependencies (line 44): checked, but this release does not act on it yet',
        'tasks."reports.fetch".retry.retry_on (line 45): checked, but this release does not act on it yet',
        'tasks."reports.fetch".client_retries (line 48): checked, but this release does not act on it yet',
        "retry (line 50): checked, but this release does not act on this section yet",
        "schedules.daily-report.calendar (line 61): checked, but this release does not act on it yet",
        "schedules.daily-report.catch_up_rate (line 67): checked, but this release does not act on it yet",
        "schedules.daily-report.overlap (line 68): checked, but this release does not act on it yet",
        "dlq (line 73): checked, but this release does not act on this section yet",
        "observability.log_format (line 80): checked, but this release does not act on it yet",
    )


SCHEDULE = """
[schedules.{name}]
task = "t"
every = "1m"
{more}
"""


def test_a_default_that_is_not_acted_on_is_said_once(tmp_path: Path) -> None:
    silent = "".join(SCHEDULE.format(name=f"s{n}", more="") for n in range(3))
    (warning,) = load(write(tmp_path, silent), {}).warnings
    assert "schedules.s0" in warning
    assert "its fires and 2 more start beside an unfinished last run" in warning
    said = SCHEDULE.format(name="s", more='overlap = "allow"\nspread = "0s"')
    assert load(write(tmp_path, said), {}).warnings == ()


def test_a_schedule_names_a_declared_queue(tmp_path: Path) -> None:
    wrong = SCHEDULE.format(name="s", more='overlap = "allow"\nqueue = "defalt"')
    report = inspect(write(tmp_path, wrong), {})
    (fault,) = report.faults
    assert (fault.where, fault.line, fault.hint) == ("schedules.s.queue", 6, '"default"')


def test_no_file_is_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(environ={})
    assert settings == Settings()
    assert settings.source is None
    assert settings.warnings == ()
    assert settings.fleet.idempotency_ttl == 86_400.0
    assert settings.fleet.enqueue_timeout == 2.0
    assert settings.worker.drain_timeout == 25.0
    assert settings.fleet.max_body == 2**20
    assert settings.fleet.result_expires == 3600.0
    assert (settings.fleet.history, settings.fleet.history_jobs) == (3600.0, 100_000)
    assert settings.data_dir == tmp_path / ".tidegate"


def test_the_order_in_which_files_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("option", "variable", "here"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f'[fleet]\nname = "{name}"\n')
    environ = {"TIDEGATE_CONFIG": str(tmp_path / "variable" / "tidegate.toml")}
    monkeypatch.chdir(tmp_path / "here")
    assert load(tmp_path / "option" / "tidegate.toml", environ).fleet.name == "option"
    assert load(None, environ).fleet.name == "variable"
    assert load(None, {}).fleet.name == "here"
    assert load(None, environ).data_dir == tmp_path / "variable" / ".tidegate"
    assert load(None, {}).source == tmp_path / "here" / "tidegate.toml"


def test_a_section_takes_what_it_leaves_out_from_the_default_section(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        tenants.acme = { weight = 3 }
        tenants.default = { max_concurrency = 4, rate = "50/s", burst = 7 }
        tenants.umbrella = { rate = "10/m", max_concurrency = "unlimited" }
        queues.reports = { weight = 2 }
        queues.default = { max_depth = 5 }
        """,
    )
    settings = load(path, {})
    assert settings.tenant("acme") == replace(settings.tenant("default"), weight=3.0)
    assert settings.tenant("never seen") == settings.tenants["default"]
    assert settings.queue("reports").max_depth == 5
    assert settings.queue("never seen").max_depth == 5
    umbrella = settings.tenant("umbrella")
    assert umbrella.max_concurrency is None
    assert umbrella.burst == 1  # a second of its own rate, not the default section's burst


def test_a_task_named_default_is_a_task_like_any_other(tmp_path: Path) -> None:
    path = write(tmp_path, 'tasks.default = { queue = "default", effect = "none" }\ntasks.other = {}\n')
    assert load(path, {}).task("other") == TaskSettings()


def test_a_rate_has_a_burst() -> None:
    assert TenantSettings().burst == 100
    assert TenantSettings(rate=Rate(micro=1_500, per_ms=1)).burst == 2
    assert TenantSettings(rate=None).burst is None


def test_undeclared_queues(tmp_path: Path) -> None:
    closed = load(write(tmp_path, "[queues.reports]\n"), {})
    assert (closed.declares("reports"), closed.declares("default"), closed.declares("mail")) == (
        True,
        True,
        False,
    )
    opened = load(write(tmp_path, "[queues]\nopen = true\n"), {})
    assert opened.declares("mail")
    named = load(write(tmp_path, "[queues.open]\nmax_depth = 7\n"), {})
    assert (named.queues_open, named.queue("open").max_depth) == (False, 7)


def test_file_over_decorator_over_celery_over_defaults() -> None:
    file = TaskSettings(effect=Effect.AT_MOST_ONCE)
    decorator = TaskSettings(queue="reports", timeouts=TimeoutSettings(queue=5.0))
    celery = TaskSettings(queue="mail", timeouts=TimeoutSettings(queue=9.0, attempt=9.0))
    merged = file.over(decorator).over(celery).over(DEFAULT_TASK)
    assert (merged.effect, merged.queue) == (Effect.AT_MOST_ONCE, "reports")
    assert (merged.timeouts.queue, merged.timeouts.attempt, merged.timeouts.step) == (5.0, 9.0, 86_400.0)
    assert DEFAULT_TASK.timeouts.queue == inf


def test_settings_are_values() -> None:
    settings = load(WHOLE, {})
    with pytest.raises(FrozenInstanceError):
        settings.fleet.name = "other"  # type: ignore[misc]
    assert hash(settings) == hash(load(WHOLE, {}))
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_the_digest_tells_values_apart_and_nothing_else(tmp_path: Path) -> None:
    spelt = write(tmp_path, "worker.lease = 15\n[queues.default]\nmax_bytes = 268435456\n")
    assert load(spelt, {}).digest() == Settings().digest() == load(None, {}).digest()
    assert load(None, {"TIDEGATE_WORKER_LEASE": "16s"}).digest() != Settings().digest()
    assert len(Settings().digest()) == 64


def test_passwords_are_not_shown(tmp_path: Path) -> None:
    url = "redis://fleet:hunter2@store.example:6379/0"
    settings = replace(Settings(), broker=BrokerSettings(url=url))
    assert "hunter2" not in repr(settings)
    assert settings.broker.shown_url == "redis://fleet:***@store.example:6379/0"
    assert BrokerSettings(url="unix:///run/a@b:c.sock").shown_url == "unix:///run/a@b:c.sock"
    assert load(write(tmp_path, f'[broker]\nurl = "{url}"\n'), {}).warnings == (
        "broker.url (line 2): a password stands in the file; TIDEGATE_BROKER_URL keeps it out",
    )


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "broker.allow_eviction = true",
            "broker.allow_eviction (line 1): a server that evicts keys loses jobs",
        ),
        (
            'worker = { lease = "2s", heartbeat = "0.5s" }',
            "worker.lease (line 1): below 3s a busy machine loses leases of healthy workers",
        ),
        (
            "worker.lease = '10m'",
            "worker.lease (line 1): a job of a lost worker waits this long before it runs again",
        ),
        (
            "tenants.acme.max_concurrency = 0",
            "tenants.acme.max_concurrency (line 1): 0 means that no job of the tenant ever runs",
        ),
        (
            "tenants.acme.max_depth = 0",
            "tenants.acme.max_depth (line 1): 0 means that no job of the tenant is ever accepted",
        ),
        (
            "queues.big.max_depth = 2000000",
            "queues.big.max_depth (line 1): more than 1,000,000 jobs were never measured; "
            "a waiting job takes about 1 KB and its body",
        ),
        (
            "tasks.slow.timeouts = { attempt = '2d' }",
            "tasks.slow.timeouts (line 1): the attempt timeout is longer than the step timeout, "
            "which ends the job first",
        ),
        (
            'queues.default.on_full = "shed"',
            "queues.default.on_full (line 1): checked, but this release does not act on it yet",
        ),
    ],
)
def test_legal_but_risky_values_warn(text: str, warning: str, tmp_path: Path) -> None:
    assert load(write(tmp_path, text + "\n"), {}).warnings == (warning,)


def test_what_the_release_does_act_on_brings_no_warning(tmp_path: Path) -> None:
    text = """
    [fleet]
    release = "2026.3"
    [worker]
    pool = "threads"
    [queues.default]
    on_full = "reject"
    weight = 2
    [tenants.acme]
    rate = "5/s"
    [tasks."a.b"]
    effect = "none"
    timeouts = { queue = "none", attempt = "5s" }
    """
    assert load(write(tmp_path, text), {}).warnings == ()


def test_direct_construction_needs_no_file() -> None:
    settings = Settings(
        fleet=FleetSettings(name="t1"), broker=BrokerSettings(url="unix:///tmp/s.sock"), root=Path("/x")
    )
    assert settings.data_dir == Path("/x/.tidegate")
    assert settings.queue("default").max_depth == 10_000
