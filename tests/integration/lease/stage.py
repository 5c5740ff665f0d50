"""One fleet under test: a server of its own, a ledger, real workers, and the questions that tests ask of them."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from celery import Celery
from tests.harness import ledger
from tests.harness.book import Ledger
from tests.harness.fixtures import OwnServer
from tests.harness.ledger import Connection, Entry, decode
from tests.harness.processes import Proc, Processes, celery_worker
from tests.harness.procfs import ProcessId, is_alive
from tests.harness.proxy import Proxy
from tests.harness.server import Server
from tests.harness.verifier import Overlap, Verifier
from tests.harness.wait import quietly, wait_until

from tidegate.config import Settings, load
from tidegate.domain.errors import StoreUnavailable
from tidegate.domain.states import State
from tidegate.store import Snapshot, Store
from tidegate.worker.install import install

QUEUE = "default"


class Stage:
    """`lease` and `heartbeat` in seconds; the fence is 0.8 of the lease."""

    def __init__(
        self,
        directory: Path,
        server: Server,
        book: Ledger,
        processes: Processes,
        *,
        url: str | None = None,
        lease: float = 3.0,
        drain_timeout: float = 25.0,
    ) -> None:
        self.server, self.book, self.processes = server, book, processes
        self.lease = lease
        name = f"s{uuid.uuid4().hex[:10]}"
        self.config = directory / f"{name}.toml"
        self.config.write_text(
            f'[fleet]\nname = "{name}"\n'
            f'[broker]\nurl = "{url or server.url}"\n'
            f'[worker]\nlease = "{lease}s"\nheartbeat = "{lease / 5}s"\ndrain_timeout = "{drain_timeout}s"\n'
            f"[queues.{QUEUE}]\n"
            '[tasks.once]\neffect = "at_most_once"\n'
            '[tenants.default]\nmax_concurrency = 100\nrate = "100000/s"\nburst = 100000\n'
        )
        self.settings: Settings = load(self.config, {})
        self.app = Celery("producer", set_as_current=False)
        install(self.app, self.settings)
        self.store = Store.open(self.settings, "tool", url=server.url)  # never through a proxy
        self.jobs: list[str] = []
        self._ledger = Connection(book.url)
        self._entries: list[Entry] = []
        self._last = "0-0"

    def close(self) -> None:
        self._ledger.close()
        self.store.close()
        self.app.close()

    # --- jobs

    def send(self, number: int, seconds: float, task: str = "work", prefix: str = "job") -> list[str]:
        """Publish jobs as a Celery user does; the ledger hears of each that was accepted."""
        sent = [f"{prefix}-{len(self.jobs) + index}" for index in range(number)]
        for job in sent:
            self.app.send_task(task, (job, seconds), headers={"operation_id": job})
            ledger.accepted(job)
            self.jobs.append(job)
        return sent

    def top_up(self, number: int, seconds: float) -> None:
        """Send that many jobs, unless that many wait already."""
        if self.counts()[0] < number:
            self.send(number, seconds)

    # --- workers

    def worker(
        self,
        pool: str = "prefork",
        concurrency: int = 2,
        *,
        prefetch: int = 1,
        options: Sequence[str] = (),
        script: bool = False,
        ready: bool = True,
    ) -> Proc:
        """A worker, ready (or only started). It holds up to concurrency x prefetch leases.

        script: started as `celery`, not as `python -m celery`.
        """
        name = f"{uuid.uuid4().hex[:8]}@test"
        argv = celery_worker(
            "tests.integration.lease.fleet", "-P", pool, "-c", str(concurrency), "-l", "INFO", "-n", name,
            "--without-gossip", "--without-mingle", "--without-heartbeat", *options,
        )  # fmt: skip
        if script:
            argv[:3] = [str(Path(sys.executable).with_name("celery"))]
        env = {**self.env(), "LEDGER_PREFETCH": str(prefetch)}
        if ready:
            return self.processes.spawn_worker(argv, env=env)
        return self.processes.spawn(argv, env=env, name="worker")

    def env(self) -> dict[str, str]:
        return {"TIDEGATE_CONFIG": str(self.config), **self.book.env()}

    # --- questions

    def entries(self) -> list[Entry]:
        """The whole ledger; only what is new is read, so that questions asked often cost little."""
        for key, fields in self._ledger.ask("XRANGE", self._ledger.stream, f"({self._last}", "+"):
            self._last = key.decode()
            self._entries.append(decode(fields[1]))
        return self._entries

    def verdict(self) -> Verifier:
        return Verifier(self.entries())

    def begun_after(self, instant: float, number: int = 1) -> bool:
        """True if that many bodies have begun since (CLOCK_BOOTTIME seconds)."""
        return sum(entry.kind == "begin" and entry.at > instant for entry in self.entries()) >= number

    def begun(self, job: str) -> int:
        """How often the body of `job` has begun."""
        return sum(entry.kind == "begin" and entry.job == job for entry in self.entries())

    def running(self) -> int:
        """Bodies that have begun and not ended, the dead ones included."""
        entries = self.entries()
        ended = {entry.attempt for entry in entries if entry.kind == "end"}
        return sum(entry.kind == "begin" and entry.attempt not in ended for entry in entries)

    def done(self) -> set[str]:
        """Jobs whose body has ended at least once."""
        entries = self.entries()
        ended = {entry.attempt for entry in entries if entry.kind == "end"}
        return {entry.job for entry in entries if entry.kind == "begin" and entry.attempt in ended}

    def snapshot(self) -> Snapshot | None:
        """The store's own count; None while it cannot be asked."""
        return quietly(self.store.snapshot, StoreUnavailable)()

    def state(self, job: str) -> State | None:
        return self.store.state(job)

    def counts(self) -> tuple[int, int]:
        """(waiting, running) as the store has them."""
        answer = wait_until(self.snapshot, "an answer of the store")
        assert answer is not None
        now = answer.queues[QUEUE]
        return now.waiting, now.running

    def wait_running(self, number: int) -> None:
        """Until that many bodies have begun and not ended."""
        wait_until(lambda: self.running() >= number, lambda: f"{number} bodies\n{self.processes.logs()}", 20)

    def ended(self, worker: Proc, timeout: float = 15.0) -> int:
        """The exit status of a worker that leaves nothing behind."""
        family = worker.family()
        status = worker.wait(timeout)
        wait_until(lambda: gone(*family), "children and watchdog to end with their worker")
        return status

    def wait_done(self, jobs: Sequence[str], timeout: float, why: str = "") -> None:
        """Until every job has been done and the store holds none of them any more."""

        def all_done() -> bool:
            return set(jobs) <= self.done()

        def told() -> str:
            missing = sorted(set(jobs) - self.done())
            text = f"{why} {len(missing)} of {len(jobs)} jobs: {missing[:5]}"
            return f"{text}\n{self.snapshot()}\n{self.processes.logs()}"

        wait_until(all_done, told, timeout, interval=0.1)

    def wait_empty(self, timeout: float = 20.0) -> None:
        """Until the store knows of no unfinished job."""

        def empty() -> bool:
            now = self.snapshot()
            return now is not None and now.queues[QUEUE].depth == 0

        wait_until(
            empty,
            lambda: f"an empty queue: {self.snapshot()}\n{self.processes.logs()}",
            timeout,
            interval=0.1,
        )

    def consumes_after(self, instant: float, timeout: float = 30.0) -> float:
        """Wait for the next body to begin; seconds from `instant` until it did."""
        why = "the worker to consume again"
        wait_until(lambda: self.begun_after(instant), lambda: f"{why}\n{self.processes.logs()}", timeout)
        return (
            min(entry.at for entry in self.entries() if entry.kind == "begin" and entry.at > instant)
            - instant
        )

    def overlaps(self) -> list[Overlap]:
        """Attempts of one job alive at once, the ones that only may have been included."""
        return self.verdict().overlaps(possible=True)

    def fences(self) -> list[int]:
        """The fencing token of every attempt that began, in the order of their beginnings."""
        return [int(entry.info["fence"]) for entry in self.entries() if entry.kind == "begin"]


def bodies(worker: Proc) -> list[ProcessId]:
    """The pool's children of a prefork worker (the watchdog is no child of interest: it leads a session)."""
    return [child for child in worker.children() if not _leads_session(child)]


def watchdog(worker: Proc) -> ProcessId:
    return next(child for child in worker.children() if _leads_session(child))


def _leads_session(process: ProcessId) -> bool:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[3]) == process.pid


def gone(*processes: ProcessId) -> bool:
    return not any(map(is_alive, processes))


class MakeStage(Protocol):
    def __call__(
        self,
        server: Server | None = None,
        *,
        url: str | None = None,
        lease: float = 3.0,
        drain_timeout: float = 25.0,
    ) -> Stage: ...


@pytest.fixture
def make_stage(
    tmp_path: Path, own_server: OwnServer, ledger: Ledger, processes: Processes
) -> Iterator[MakeStage]:
    """Makes fleets; without a server of yours, on one that writes an append-only file as users' do."""
    stages: list[Stage] = []

    def make(
        server: Server | None = None,
        *,
        url: str | None = None,
        lease: float = 3.0,
        drain_timeout: float = 25.0,
    ) -> Stage:
        server = server or own_server(options={"appendonly": "yes"})
        stages.append(
            Stage(tmp_path, server, ledger, processes, url=url, lease=lease, drain_timeout=drain_timeout)
        )
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


Proxied = tuple[Server, Proxy]


@pytest.fixture
def proxied(own_server: OwnServer) -> Iterator[Proxied]:
    """A server and a proxy in front of it."""
    server = own_server(options={"appendonly": "yes"})
    with Proxy(server.url) as proxy:
        yield server, proxy
