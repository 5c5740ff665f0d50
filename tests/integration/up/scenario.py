"""`tidegate up` is killed with SIGKILL at random moments and started again, while jobs come in."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.harness.procfs import ProcessId, boot_time, is_alive
from tests.harness.verifier import Verifier
from tests.harness.wait import wait_until
from tests.integration.up.stage import Stage, wait_gone

#: seconds after the start within which a fleet is still starting
STARTING = 2.0
#: seconds after its first job within which a fleet at work is killed
WORKING = 3.0
#: seconds of a job at most
LONGEST = 1.5
_WAITING = 6  # jobs that shall be under way


def kills(stage: Stage, *, rounds: int, seed: int) -> Verifier:
    """The verdict of the ledger, once every accepted job has run. Every second kill falls into a start, the others into
    work.
    """
    print(f"seed {seed}")
    chance = Random(seed)
    family: list[ProcessId] = []
    for number in range(rounds):
        up = stage.up("--workers", "2", ready=0)
        begun = stage.book.count("begin")
        if number % 2 == 0:
            _meanwhile(stage, chance, lambda: stage.book.count("begin") > begun)  # noqa: B023
        until = boot_time() + chance.uniform(0.0, STARTING if number % 2 else WORKING)
        _meanwhile(stage, chance, lambda: boot_time() >= until)  # noqa: B023
        family += up.family()
        up.kill9()
    stage.send(2, 0.1)
    last = stage.up("--workers", "2", ready=2)
    _work(stage, chance)
    wait_until(
        lambda: not stage.verdict().lost(),
        lambda: f"the end of {stage.verdict().lost()}\n{stage.processes.logs()}",
        60,
    )
    wait_gone(family, last)
    assert all(is_alive(stage.part(last, name)) for name in ("worker-1", "worker-2", "beat-1", "exporter"))
    last.term()
    assert last.wait() == 0
    return stage.verdict()


def _meanwhile(stage: Stage, chance: Random, over: Callable[[], bool]) -> None:
    """Send jobs until something is so."""

    def look() -> bool:
        _work(stage, chance)
        return over()

    wait_until(look, stage.processes.logs, 30, interval=0.05)


def _work(stage: Stage, chance: Random) -> None:
    """Keep some jobs under way, once there is a server (it is `up` that starts it)."""
    if stage.server() is None:
        return
    book = stage.book
    if book.count("accepted") - book.count("end") < _WAITING:
        stage.send(1, chance.uniform(0.0, LONGEST))
