"""Guard and watchdog against hand-made processes: silence ends bodies in time, and nothing else does."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.harness.processes import Proc, Processes
from tests.harness.procfs import ProcessId, boot_time, identify, is_alive, signal_process
from tests.harness.wait import wait_until

LIMIT = 1.0  # seconds of silence
SLACK = 0.5  # a look every 0.1 s, and a machine with other work


@dataclass(frozen=True, slots=True)
class Puppet:
    proc: Proc
    children: tuple[ProcessId, ...]
    subprocesses: tuple[ProcessId, ...]
    watchdog: ProcessId

    @property
    def bodies(self) -> tuple[ProcessId, ...]:
        return self.children + self.subprocesses


def puppet(processes: Processes, **order: Any) -> Puppet:
    order = {"limit": LIMIT, "mode": "children", "open": True, "guards": True, "stuck": "", **order}
    script = Path(__file__).with_name("puppet.py")
    proc = processes.spawn([sys.executable, str(script), json.dumps(order)], name="puppet")
    proc.wait_for_text("watchdog")
    said = json.loads(next(line for line in proc.text().splitlines() if line.startswith("{")))

    def known(pids: list[int]) -> tuple[ProcessId, ...]:
        found = tuple(filter(None, map(identify, pids)))
        assert len(found) == len(pids), proc.tail()
        return found

    return Puppet(proc, known(said["children"]), known(said["subprocesses"]), known([said["watchdog"]])[0])


def gone(*ids: ProcessId) -> bool:
    return not any(map(is_alive, ids))


@pytest.mark.parametrize("guards", [True, False], ids=["guard", "watchdog alone"])
def test_a_frozen_main_process_loses_its_children_in_time(processes: Processes, guards: bool) -> None:
    it = puppet(processes, guards=guards)
    frozen = boot_time()
    it.proc.freeze()
    wait_until(lambda: gone(*it.bodies), "the end of children and their subprocesses", timeout=LIMIT + 5)
    silence = boot_time() - frozen
    assert LIMIT - 0.1 < silence < LIMIT + SLACK
    assert is_alive(it.proc.id)
    assert is_alive(it.watchdog)


def test_a_child_stuck_in_c_is_ended_by_the_watchdog(processes: Processes) -> None:
    it = puppet(processes, stuck="child")
    it.proc.freeze()
    wait_until(lambda: gone(*it.bodies), "the end of stuck children", timeout=LIMIT + 5)


def test_children_without_bodies_outlive_silence(processes: Processes) -> None:
    it = puppet(processes, open=False)
    frozen = boot_time()
    it.proc.freeze()
    wait_until(lambda: boot_time() > frozen + 3 * LIMIT, "silence", timeout=4 * LIMIT)
    assert all(map(is_alive, it.bodies))


def test_nothing_is_left_of_a_killed_worker(processes: Processes) -> None:
    it = puppet(processes)
    it.proc.kill9()
    wait_until(lambda: gone(*it.bodies, it.watchdog), "the end of children, subprocesses, watchdog")


def test_subprocesses_of_a_child_that_died_first_go_too(processes: Processes) -> None:
    it = puppet(processes)
    for child in it.children:
        signal_process(child, signal.SIGKILL)
    wait_until(lambda: gone(*it.children), "dead children")
    assert all(map(is_alive, it.subprocesses)), "the worker lives: they are its business"
    it.proc.kill9()
    wait_until(lambda: gone(*it.subprocesses, it.watchdog), "the end of orphans")


def test_a_worker_stuck_in_c_ends_as_a_whole_where_bodies_run_inside_it(processes: Processes) -> None:
    it = puppet(processes, mode="main", stuck="main")
    assert it.proc.wait(LIMIT + 5) == -signal.SIGKILL
    wait_until(lambda: gone(it.watchdog), "the end of the watchdog")


def test_a_frozen_worker_is_killed_too(processes: Processes) -> None:
    it = puppet(processes, mode="main")
    it.proc.freeze()
    assert it.proc.wait(LIMIT + 5) == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_what_a_terminal_sends_does_not_end_the_watchdog(
    processes: Processes, number: signal.Signals
) -> None:
    it = puppet(processes, open=False)
    signal_process(it.watchdog, number)
    assert os.getsid(it.watchdog.pid) == it.watchdog.pid, "Ctrl-C does not reach another session"
    it.proc.freeze()
    assert is_alive(it.watchdog)


def test_a_watchdog_that_was_ended_is_started_again(processes: Processes) -> None:
    it = puppet(processes)
    signal_process(it.watchdog, signal.SIGKILL)
    it.proc.wait_for_text("starting it again")
    wait_until(lambda: len(it.proc.children()) == 3, "another watchdog beside two children")


def test_the_watchdog_is_small_and_idle(processes: Processes) -> None:
    it = puppet(processes, open=False)
    process = psutil.Process(it.watchdog.pid)
    began, cpu = boot_time(), sum(process.cpu_times()[:2])
    wait_until(lambda: boot_time() > began + 2, "two idle seconds")
    spent = sum(process.cpu_times()[:2]) - cpu
    memory = process.memory_full_info()
    assert memory.uss < 8 * 2**20, f"{memory.uss / 2**20:.1f} MiB of its own"
    assert spent / 2 < 0.02, f"{spent * 50:.1f} % of a core"
