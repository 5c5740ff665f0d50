"""Real processes are stopped, killed and ended at a named place, once over all of them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tests.harness import procfs
from tests.harness.book import Ledger
from tests.harness.faultpoint import Faultpoints
from tests.harness.processes import Proc, Processes

from tidegate.telemetry.faultpoint import EXIT_STATUS

WALK = (
    "from tidegate.telemetry.faultpoint import reach\n"
    "for step in range(5):\n"
    "    reach('walk.step'); print('step', step, flush=True)\n"
)


def walk(processes: Processes, points: Faultpoints) -> Proc:
    return processes.spawn([sys.executable, "-c", WALK], env=points.env())


def test_kill(processes: Processes, tmp_path: Path) -> None:
    points = Faultpoints(tmp_path, "walk.step=kill:3")
    walker = walk(processes, points)
    assert walker.wait() == -signal.SIGKILL
    assert walker.text().split("\n")[:-1] == ["step 0", "step 1"]
    assert points.wait_reached("walk.step", times=3) == walker.pid


def test_all_processes_count_together_so_the_next_one_lives(processes: Processes, tmp_path: Path) -> None:
    points = Faultpoints(tmp_path, "walk.step=kill:2")
    first = walk(processes, points)
    assert first.wait() == -signal.SIGKILL
    second = walk(processes, points)
    assert second.wait() == 0
    assert points.arrivals("walk.step") == [first.pid] * 2 + [second.pid] * 5


def test_exit_ends_without_clean_up_and_raise_with_a_traceback(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "exit").mkdir()
    assert walk(processes, Faultpoints(tmp_path / "exit", "walk.step=exit")).wait() == EXIT_STATUS
    raiser = walk(processes, Faultpoints(tmp_path, "walk.step=raise"))
    assert raiser.wait() == 1
    assert "FaultReached: walk.step" in raiser.text()


def test_stop_waits_for_the_test(processes: Processes, tmp_path: Path, ledger: Ledger) -> None:
    points = Faultpoints(tmp_path, "walk.step=stop:2")
    walker = walk(processes, points)
    process = points.wait_stopped("walk.step", times=2, record=ledger.record_process)
    assert process == walker.id
    assert walker.text() == "step 0\n"
    points.resume(process, ledger.record_process)
    assert walker.wait() == 0
    assert [entry.kind for entry in ledger.entries()] == ["frozen", "thawed"]
    assert not procfs.is_alive(process)
