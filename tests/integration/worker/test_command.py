"""`tidegate worker`: the settings' app, modules, pool and queues, and clear errors with their exit codes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest
from celery import Celery
from tests.harness.book import Ledger
from tests.harness.processes import Processes, environment
from tests.harness.wait import wait_until
from tests.integration.worker.stage import TASKS, MakeStage, Stage

from tidegate import embedded
from tidegate.config import load
from tidegate.domain.errors import StoreUnavailable
from tidegate.worker.install import install

TIDEGATE = [str(Path(sys.executable).with_name("tidegate"))]


def run(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TIDEGATE, *arguments],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_worker_of_modules_that_the_settings_name(make_stage: MakeStage) -> None:
    stage = make_stage()
    worker = stage.processes.spawn_worker(
        [*TIDEGATE, "worker", "--config", str(stage.config), "-c", "1", "-P", "threads", "-n", "me@test"],
        env=stage.book.env(),
    )
    assert stage.send("add", 1, 2).result.get(timeout=20) == 3
    (info,) = stage.store.snapshot().workers
    assert (info.hostname, info.concurrency, info.queues) == ("me@test", 1, ("default",))
    worker.term()
    assert worker.wait() == 0


def test_a_worker_of_the_users_own_app_and_other_queues(make_stage: MakeStage) -> None:
    stage = make_stage()
    text = stage.config.read_text()
    stage.config.write_text(
        text.replace(f'imports = ["{TASKS}"]', 'celery_app = "tests.integration.worker.fleet_app:app"')
    )
    stage.processes.spawn_worker(
        [*TIDEGATE, "worker", "-P", "solo", "-Q", "other"],
        env={"TIDEGATE_CONFIG": str(stage.config), **stage.book.env()},
    )
    elsewhere = stage.run("mark")
    here = stage.run("mark", queue="other")
    stage.wait_done([here])
    assert stage.begun(elsewhere.job) == 0


@pytest.mark.parametrize(
    ("settings", "arguments", "code", "message"),
    [
        ("", ("-Q", "defualt"), 1, r"queue 'defualt' is not declared; did you mean 'default'"),
        ("[broker]\nurl = 'redis://127.0.0.1:1'", (), 3, r"store at redis://127.0.0.1:1.* cannot be reached"),
        ("[fleet]\ncelery_app = 'no.such:app'", (), 4, r"fleet.celery_app.*no.such:app cannot be loaded"),
        (
            "[fleet]\nimports = ['reprots']",
            (),
            4,
            r"fleet.imports.*there is no module reprots in .*, nor installed",
        ),
        (
            "[fleet]\nimports = ['no.such']",
            (),
            4,
            r"fleet.imports.*no.such cannot be found: No module named 'no'",
        ),
        ("[fleet]\ncelery_app = 'json:dumps'", (), 4, r"json:dumps is a function, expected a Celery app"),
        ("", ("-P", "gevent"), 2, r"'gevent' is not one of 'prefork', 'threads', 'solo'"),
    ],
)
def test_clear_errors(
    tmp_path: Path, stage: Stage, settings: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "tidegate.toml").write_text(settings or f"[broker]\nurl = '{stage.server.url}'\n")
    ended = run("worker", *arguments, cwd=tmp_path)
    assert re.search(message, ended.stderr), ended.stderr
    assert ended.returncode == code


def test_celerys_own_command_refuses_pools_without_leases(tmp_path: Path, stage: Stage) -> None:
    """gevent itself is not installed here, so the class has to come from a module of that name."""
    (tmp_path / "gevent_pool.py").write_text(
        "from celery.concurrency.solo import TaskPool\n\nclass Pool(TaskPool): ...\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "tests.integration.worker.fleet_app", "worker"],
        cwd=tmp_path,
        env=environment(
            {"TIDEGATE_CONFIG": str(stage.config), "CELERY_CUSTOM_WORKER_POOL": "gevent_pool:Pool"}
        )
        | {"PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}", "LEDGER_POOL": "custom"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "cannot keep leases in the gevent pool" in ended.stderr + ended.stdout
    assert ended.returncode != 0


def published(app: Celery) -> bool:
    """Publish one job and see its result; False while the store is away."""
    try:
        return bool(app.send_task(f"{TASKS}.add", (3, 4)).get(timeout=30) == 7)
    except StoreUnavailable:
        return False


def test_an_embedded_server_that_dies_is_started_again_by_the_worker(
    tmp_path: Path, ledger: Ledger, processes: Processes
) -> None:
    home = Path(tempfile.mkdtemp(prefix="tg-"))  # a unix socket's path is short
    config = home / "tidegate.toml"
    config.write_text(f'[fleet]\nname = "e{uuid.uuid4().hex[:8]}"\nimports = ["{TASKS}"]\n[queues.default]\n')
    processes.spawn_worker([*TIDEGATE, "worker", "--config", str(config), "-P", "threads"], env=ledger.env())
    app = Celery("producer", set_as_current=False)
    install(app, load(config, {}))
    try:
        assert app.send_task(f"{TASKS}.add", (1, 2)).get(timeout=20) == 3
        before = embedded.status(home / ".tidegate").endpoint
        assert before is not None
        os.kill(before.pid, signal.SIGKILL)

        def revived() -> bool:
            now = embedded.status(home / ".tidegate").endpoint
            return now is not None and now.pid != before.pid

        wait_until(revived, processes.logs, 20)
        wait_until(lambda: published(app), "a publish")
    finally:
        processes.close()
        app.close()
        embedded.stop(home / ".tidegate")
        shutil.rmtree(home, ignore_errors=True)
