"""Must: noop draining (prefork 2, late ack, prefetch 1) at least 1.8 times stock Celery on the same server in one run,
single publish at least 0.9 times, bulk at least 5 times. Rates come from completions; medians of interleaved rounds."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench import tally
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Proc, Processes, celery_worker
from tests.harness.server import Server
from tests.harness.wait import wait_until

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1200)]

JOBS = int(os.environ.get("BENCH_JOBS", "5000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
#: give the server a core of its own, as it has on a machine of its own. Else the kernel mostly wakes it on the very
#: core of the worker's main process, where the two take turns while another core idles: of either kind
PINNED = os.environ.get("BENCH_PINNED", "1") == "1"
KINDS = ("stock", "tidegate")

SETTINGS = """
[fleet]
enqueue_timeout = "30s"
[broker]
url = "{url}"
result_backend = "none"
[queues.default]
max_depth = 1000000
[tenants.default]
max_concurrency = "unlimited"
rate = "unlimited"
max_depth = "unlimited"
"""


class Bench:
    """One server for both kinds, emptied between rounds."""

    def __init__(self, server: Server, processes: Processes, directory: Path) -> None:
        self.server, self.processes, self.directory = server, processes, directory
        self.settings = directory / "tidegate.toml"
        self.settings.write_text(SETTINGS.format(url=server.url))

    def env(self, kind: str, **more: str) -> dict[str, str]:
        return {
            "BENCH_KIND": kind,
            "BENCH_URL": self.server.url.replace("unix://", "redis+socket://"),
            "TIDEGATE_CONFIG": str(self.settings),
            "TALLY": str(self.directory / "tally"),
            **more,
        }

    def publish(self, kind: str, how: str, number: int) -> float:
        proc = self.processes.spawn(
            [sys.executable, "-m", "tests.bench.publish", how, str(number)],
            env=self.env(kind),
            name="publish",
        )
        assert proc.wait(300) == 0, proc.tail()
        return float(proc.text().split()[-1])

    def drain(self, kind: str, prefetch: int = 1) -> float:
        """Completions per second between the first tenth and the last tenth of the jobs."""
        self.server.client().flushall()
        path = self.directory / "tally"
        tally.create(path)
        self.publish(kind, "bulk" if kind == "tidegate" else "single", JOBS)
        worker = self.processes.spawn(
            celery_worker(
                "tests.bench.fleet", "-P", "prefork", "-c", "2", "-l", "WARNING",
                "--without-heartbeat", "--without-gossip", "--without-mingle",
            ),
            env=self.env(kind, BENCH_PREFETCH=str(prefetch)),
            name=f"worker-{kind}",
        )  # fmt: skip
        low, high = JOBS // 10, JOBS - JOBS // 10
        _when(lambda: tally.total(path) >= low // 2, worker.tail)
        self._place(worker)
        begun = _when(lambda: tally.total(path) >= low, worker.tail)
        start = tally.total(path)
        ended = _when(lambda: tally.total(path) >= high, worker.tail)
        rate = (tally.total(path) - start) / (ended - begun)
        worker.kill_family()
        return rate

    def _place(self, worker: Proc) -> None:
        """The server on the last core, the worker's main process on the first, its children where they like."""
        cores = sorted(os.sched_getaffinity(0))
        if PINNED and len(cores) > 1:
            os.sched_setaffinity(self.server.pid, cores[-1:])
            os.sched_setaffinity(worker.pid, cores[:1])


def _when(condition: Callable[[], bool], tail: Callable[[], str]) -> float:
    wait_until(condition, tail, timeout=120, interval=0.002)
    return time.perf_counter()


@pytest.fixture
def bench(own_server: OwnServer, processes: Processes, tmp_path: Path) -> Bench:
    return Bench(own_server(options={"appendonly": "yes"}), processes, tmp_path)


@pytest.fixture
def fleet_bench(own_server: OwnServer, processes: Processes, tmp_path: Path) -> Bench:
    """Over TCP, as workers of a fleet reach their server."""
    return Bench(own_server(listen="tcp", options={"appendonly": "yes"}), processes, tmp_path)


def _compare(name: str, measure: Callable[[str], float], least: float) -> None:
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        for kind in KINDS:
            rates[kind].append(measure(kind))
    stock, ours = (statistics.median(rates[kind]) for kind in KINDS)
    # each round against its neighbour: a machine that others use as well changes its speed between rounds
    ratio = statistics.median(mine / theirs for theirs, mine in zip(*rates.values(), strict=True))
    shown = {kind: [round(rate) for rate in rates[kind]] for kind in KINDS}
    print(f"\n{name}: stock {stock:.0f}/s, tidegate {ours:.0f}/s, ratio {ratio:.2f} (least {least}) {shown}")
    assert ratio >= least


def test_noop_draining(fleet_bench: Bench) -> None:
    _compare("noop draining, prefork 2, prefetch 1", fleet_bench.drain, 1.8)


def test_single_publish(bench: Bench) -> None:
    _compare("single publish", lambda kind: bench.publish(kind, "single", 2000), 0.9)


def test_bulk_publish(bench: Bench) -> None:
    how = {"stock": "single", "tidegate": "bulk"}
    number = {"stock": 2000, "tidegate": 20000}
    _compare("bulk publish against single", lambda kind: bench.publish(kind, how[kind], number[kind]), 5.0)
