"""One fleet with workers as users start them, and the questions that these tests ask."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from celery import Celery
from celery.result import AsyncResult
from tests.harness.book import Ledger
from tests.harness.processes import Proc, Processes, celery_worker
from tests.harness.server import Server
from tests.harness.wait import quietly, wait_until

from tidegate.config import Settings, load
from tidegate.domain.errors import StoreUnavailable
from tidegate.domain.job import JobView
from tidegate.domain.states import State
from tidegate.store import QueueCounts, Store
from tidegate.worker.install import install

QUEUE = "default"
APP = "tests.integration.worker.fleet_app"
TASKS = "tests.integration.worker.fleet_tasks"
POOLS = ("prefork", "threads", "solo")
SLOTS = {"prefork": 2, "threads": 2, "solo": 1}
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True, slots=True)
class Sent:
    """A published job: Celery's result and the name under which the store knows it."""

    job: str
    result: AsyncResult[Any]


class Stage:
    """A fleet of its own name on `server`."""

    def __init__(
        self,
        directory: Path,
        server: Server,
        book: Ledger,
        processes: Processes,
        more: str = "",
        worker: str = "",
    ) -> None:
        self.server, self.book, self.processes = server, book, processes
        self.pool = "prefork"
        self.name = f"w{uuid.uuid4().hex[:10]}"
        self.config = directory / f"{self.name}.toml"
        self.config.write_text(
            f'[fleet]\nname = "{self.name}"\nimports = ["{TASKS}"]\n'
            f'[broker]\nurl = "{server.url}"\n'
            f"[worker]\n{worker}\n"
            f"[queues.{QUEUE}]\nmax_depth = 100000\n[queues.other]\n"
            '[tenants.default]\nmax_concurrency = "unlimited"\nrate = "unlimited"\nmax_depth = "unlimited"\n'
            + more
        )
        self.settings: Settings = load(self.config, {})
        self.app = Celery("producer", set_as_current=False)
        install(self.app, self.settings)
        self.store = Store.open(self.settings, "tool")

    def close(self) -> None:
        self.store.close()
        self.app.close()

    # --- jobs

    @staticmethod
    def task(name: str) -> str:
        """The full name of one of the tasks."""
        return f"{TASKS}.{name}"

    def send(self, task: str, *args: Any, **options: Any) -> Sent:
        """Publish by name, as a Celery producer does."""
        job = f"job-{uuid.uuid4().hex[:10]}"
        name = task if "." in task else f"{TASKS}.{task}"
        return Sent(job, self.app.send_task(name, args, headers={"operation_id": job}, **options))

    def run(self, task: str, *args: Any, **options: Any) -> Sent:
        """As `send`, for the tasks whose first argument is the ledger's name of the job."""
        job = f"job-{uuid.uuid4().hex[:10]}"
        headers = {"operation_id": job}
        return Sent(job, self.app.send_task(f"{TASKS}.{task}", (job, *args), headers=headers, **options))

    def s(self, task: str, *args: Any, **options: Any) -> Any:
        """A signature of one of the tasks."""
        return self.app.signature(f"{TASKS}.{task}", args=args, **options)

    # --- workers

    def worker(self, pool: str = "prefork", *more: str, concurrency: int = 0, prefetch: int = 1) -> Proc:
        """`celery -A … worker`, ready."""
        worker = self.start_worker(pool, *more, concurrency=concurrency, prefetch=prefetch)
        worker.wait_for_text(" ready.", 30)
        return worker

    def start_worker(self, pool: str, *more: str, concurrency: int = 0, prefetch: int = 1) -> Proc:
        """The same, not yet ready."""
        argv = celery_worker(
            APP, "-P", pool, "-c", str(concurrency or SLOTS[pool]), "-l", "INFO", *QUIET,
            "-n", f"{uuid.uuid4().hex[:8]}@test", *more,
        )  # fmt: skip
        env = {"TIDEGATE_CONFIG": str(self.config), "LEDGER_PREFETCH": str(prefetch), **self.book.env()}
        return self.processes.spawn(argv, env=env, name="worker")

    # --- questions

    def view(self, job: str) -> JobView | None:
        return self.store.job(job)

    def state(self, job: str) -> State | None:
        return self.store.state(job)

    def wait_state(self, job: str, *wanted: State, timeout: float = 20.0) -> JobView | None:
        """Until the job is in one of the states; its record, if there is one."""
        wait_until(
            lambda: self.state(job) in wanted,
            lambda: f"{job} to be {wanted}, is {self.state(job)}\n{self.processes.logs()}",
            timeout,
        )
        return self.view(job)

    def counts(self, queue: str = QUEUE) -> QueueCounts:
        return self.store.snapshot().queues[queue]

    def begun(self, job: str) -> int:
        """How often the body of `job` has begun."""
        return sum(entry.kind == "begin" and entry.job == job for entry in self.book.entries())

    def at_once(self, sent: Sequence[Sent]) -> int:
        """How many bodies of these jobs run now, as far as they have told."""
        entries, jobs = self.book.entries(), {one.job for one in sent}
        ended = {entry.attempt for entry in entries if entry.kind == "end"}
        return sum(e.kind == "begin" and e.job in jobs and e.attempt not in ended for e in entries)

    def wait_begun(self, *jobs: str, timeout: float = 20.0) -> None:
        self.wait(lambda: all(self.begun(job) for job in jobs), f"{jobs} to begin", timeout)

    def notes(self, kind: str) -> list[Any]:
        return [dict(entry.info) for entry in self.book.entries() if entry.kind == kind]

    def wait(self, predicate: Callable[[], Any], why: str, timeout: float = 20.0) -> Any:
        return wait_until(
            quietly(predicate, StoreUnavailable),  # connections of this process may have been killed too
            lambda: f"{why}: {quietly(self.counts, StoreUnavailable)()}\n{self.processes.logs()}",
            timeout,
            interval=0.05,
        )

    def wait_idle(self, timeout: float = 20.0) -> None:
        """Until nothing waits and no lease is held."""
        self.wait(lambda: _busy(self.counts()) == 0, "nothing to do", timeout)

    def wait_done(self, sent: Sequence[Sent], timeout: float = 30.0) -> None:
        self.wait(
            lambda: all(self.state(one.job) is State.SUCCEEDED for one in sent),
            f"{len(sent)} jobs done",
            timeout,
        )


def _busy(counts: QueueCounts) -> int:
    """Of one snapshot: between two of them a job may go from running to waiting, and be seen in neither."""
    return counts.waiting + counts.running


class MakeStage(Protocol):
    def __call__(self, server: Server | None = None, more: str = "", worker: str = "") -> Stage: ...


def detail(view: JobView | None) -> dict[str, Any]:
    """What the record says about the last end."""
    assert view is not None
    found: dict[str, Any] = json.loads(view.detail)
    return found
