"""A fleet on a server with little memory, what fills it, and what is asked while it is full."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import Celery
from tests.harness import ledger
from tests.harness.book import Ledger
from tests.harness.processes import Proc, Processes, celery_worker
from tests.harness.server import Server
from tests.harness.verifier import Verifier
from tests.harness.wait import wait_until

from tidegate.client.bulk import send_many
from tidegate.client.one import send
from tidegate.client.producer import Producer, with_settings
from tidegate.client.request import Call
from tidegate.config import load
from tidegate.domain.errors import QueueFull
from tidegate.domain.states import State
from tidegate.store import Snapshot, Store
from tidegate.worker import identity

MAXMEMORY = {"maxmemory": "24mb", "appendonly": "yes"}
LEASE = 3.0
BALLAST = "x" * 90_000
DOORS = ("enqueue", "apply_async", "bulk")
#: not bound by the limit, so that memory can be fuller than full: what others free is then not enough
_TAKE = """#!lua flags=allow-oom
redis.call('SET', KEYS[1], string.rep('x', tonumber(ARGV[1])))
"""
_TICKS = os.sysconf("SC_CLK_TCK")


class Stage:
    """One fleet; its jobs are the ledger's."""

    def __init__(self, directory: Path, server: Server, book: Ledger, processes: Processes) -> None:
        self.directory, self.server, self.book, self.processes = directory, server, book, processes
        name = f"m{uuid.uuid4().hex[:10]}"
        self.config = directory / f"{name}.toml"
        self.config.write_text(
            f'[fleet]\nname = "{name}"\n[broker]\nurl = "{server.url}"\n'
            f'[worker]\nlease = "{LEASE}s"\nheartbeat = "500ms"\n'
            "[queues.default]\nmax_depth = 100000\n"
            '[tenants.default]\nmax_concurrency = "unlimited"\nrate = "unlimited"\nmax_depth = "unlimited"\n'
        )
        self.producer: Producer = with_settings(load(self.config, {}))
        self.app: Celery = self.producer.app
        self.store = Store.open(self.producer.settings, "tool")
        self.client = server.client()
        self._names = 0

    def close(self) -> None:
        identity.detach(self.app)
        self.producer.fleet.close()
        self.store.close()
        self.app.close()

    # --- jobs

    def name(self) -> str:
        self._names += 1
        return f"job-{self._names}"

    def hold(self, **options: Any) -> tuple[str, Path]:
        """A job whose body runs until its gate exists: both."""
        job = self.name()
        gate = self.directory / job
        self.app.send_task("hold", (job, str(gate)), options, headers={"operation_id": job})
        ledger.accepted(job)
        return job, gate

    def worker(self, pool: str, concurrency: int = 2) -> Proc:
        argv = celery_worker(
            "tests.integration.full_memory.app", "-P", pool, "-c", str(concurrency), "-l", "INFO",
            "--without-gossip", "--without-mingle", "--without-heartbeat", "-n", f"{uuid.uuid4().hex[:8]}@test",
        )  # fmt: skip
        return self.processes.spawn_worker(argv, env={"TIDEGATE_CONFIG": str(self.config)})

    # --- producers

    def offer(self, door: str, number: int = 1, ballast: str = "") -> list[QueueFull]:
        """Offer jobs through one door and write down what was said; the refusals."""
        jobs = [self.name() for _ in range(number)]
        answers: list[object] = []
        if door == "bulk":
            answers += send_many(self.producer, [Call("load", (job, ballast)) for job in jobs])
        else:
            answers += [self._one(door, job, ballast) for job in jobs]
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, QueueFull):
                ledger.refused(job)
            else:
                assert not isinstance(answer, Exception), repr(answer)
                ledger.accepted(job)
        return [answer for answer in answers if isinstance(answer, QueueFull)]

    def _one(self, door: str, job: str, ballast: str) -> object:
        try:
            if door == "enqueue":
                return send(self.producer, Call("load", (job, ballast)))
            return self.app.signature("load", (job, ballast)).apply_async()
        except QueueFull as error:
            return error

    def fill(self) -> None:
        """Producers at every door, until each is told no."""
        open_doors = list(DOORS)
        while open_doors:
            for door in list(open_doors):
                if self.offer(door, 5, BALLAST):
                    open_doors.remove(door)

    # --- memory

    def take(self, spare: int) -> None:
        """A foreigner takes memory until only `spare` bytes are left; less than none is possible too."""
        used, most = self.memory()
        self.client.eval(_TAKE, 1, f"foreign:{uuid.uuid4().hex}", most - used - spare)

    def give_back(self) -> None:
        """The foreigner leaves."""
        self.client.delete(*self.client.keys("foreign:*"))

    def memory(self) -> tuple[int, int]:
        """Bytes in use and allowed."""
        info = self.client.info("memory")
        return int(info["used_memory"]), int(info["maxmemory"])

    def refusals(self) -> int:
        """Commands that the server has refused for lack of memory."""
        counted = self.client.info("errorstats").get("errorstat_OOM", {"count": 0})
        return int(counted["count"])

    # --- questions

    def now(self) -> float:
        """Seconds, by the server's clock."""
        seconds, micros = self.client.time()
        return float(seconds) + float(micros) / 1e6

    def pass_time(self, seconds: float) -> None:
        """Until the server's clock has moved on so far."""
        until = self.now() + seconds
        wait_until(lambda: self.now() >= until, "time to pass", timeout=seconds + 30)

    def snapshot(self) -> Snapshot:
        return self.store.snapshot()

    def wait_begun(self, *jobs: str) -> None:
        def begun() -> bool:
            return set(jobs) <= {entry.job for entry in self.book.entries() if entry.kind == "begin"}

        self.wait(begun, f"{jobs} to begin")

    def wait_state(self, job: str, state: State) -> None:
        self.wait(lambda: self.store.state(job) is state, f"{job} to be {state}")

    def wait(self, predicate: Callable[[], object], why: str, timeout: float = 60.0) -> None:
        told = lambda: f"{why}: {self.snapshot()}\n{self.processes.logs()}"  # noqa: E731
        wait_until(predicate, told, timeout, interval=0.05)

    def verdict(self) -> Verifier:
        return Verifier(self.book.entries())


def cpu_seconds(proc: Proc) -> float:
    """What the main process of a worker has used so far."""
    fields = Path(f"/proc/{proc.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
