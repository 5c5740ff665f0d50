"""Real beat processes: each fire has one job, also when they are killed at the worst moments."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.book import Ledger
from tests.harness.faultpoint import Faultpoints
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Proc, Processes, environment
from tests.harness.server import Server
from tests.harness.wait import wait_until
from tests.lua.dump import Dump
from tests.lua.rig import CLOCK

from tidegate.config import load
from tidegate.domain.fire import utc_text
from tidegate.domain.header import HEADER
from tidegate.store import Store, Timetable

TIDEGATE = str(Path(sys.executable).with_name("tidegate"))
TASKS = "tests.integration.beat.fire_tasks"
PERIOD = 20  # ms

TICK = f"""
[schedules.tick]
task = "{TASKS}.report"
kwargs = {{ region = "cn" }}
every = "{PERIOD}ms"
catch_up = "all"
catch_up_max = 1000
overlap = "allow"
pass_fire_time = true
"""


class Yard:
    """A fleet whose clock the test moves (or the server's), and its beat processes."""

    def __init__(
        self, directory: Path, server: Server, processes: Processes, more: str, clock_ms: int | None
    ) -> None:
        self.server, self.processes = server, processes
        self.name = f"y{uuid.uuid4().hex[:10]}"
        self.config = directory / f"{self.name}.toml"
        self.config.write_text(
            f'[fleet]\nname = "{self.name}"\nimports = ["{TASKS}"]\n[broker]\nurl = "{server.url}"\n'
            '[tenants.default]\nmax_concurrency = "unlimited"\nrate = "unlimited"\nmax_depth = "unlimited"\n'
            + more
        )
        self.store = Store.open(load(self.config, {}), "tool", clock_ms=clock_ms)

    def beat(self, faults: Faultpoints | None = None) -> Proc:
        """`tidegate beat`, running; or dead already, if it was told to die."""
        proc = self.processes.spawn(
            [TIDEGATE, "beat", "--config", str(self.config)],
            name="beat",
            env=faults.env() if faults else None,
        )
        self.wait(lambda: "beat runs" in proc.text() or (faults and not proc.alive), "beat to run")
        if "tick" in self.store.settings.schedules:  # it begins when its emitter has seen it
            self.wait(lambda: Timetable(self.store).history(["tick"]), "the schedule to begin")
        return proc

    def type(self, *words: str) -> tuple[int, str]:
        """One command; its exit code and what it printed."""
        done = subprocess.run(
            [TIDEGATE, *words, "--config", str(self.config)],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(),
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def depth(self) -> int:
        return self.store.snapshot().queues["default"].depth

    def pass_time(self, fires: int) -> None:
        """The clock moves from fire to fire, and the emitters keep up."""
        for _ in range(fires):
            self.store.advance_clock(PERIOD)
            due = (self.store.snapshot().now_ms - CLOCK) // PERIOD
            self.wait(lambda due=due: self.depth >= due, f"{due} fires")  # type: ignore[misc]

    def times(self) -> list[str]:
        """Logical times of the jobs that are there, ascending."""
        client = self.server.client()
        jobs = Dump(client, self.store.key_prefix).jobs.values()
        client.close()
        return sorted(json.loads(job.body)["headers"][HEADER]["logical_fire_time"] for job in jobs)

    def wait(self, predicate: Callable[[], Any], why: str) -> None:
        wait_until(
            predicate, lambda: f"{why}; {self.depth} jobs\n{self.processes.logs()}", 30, interval=0.005
        )


def expected(fires: int) -> list[str]:
    """As `times`, for the fires since the start; in UTC, whole milliseconds."""
    told = [utc_text(CLOCK + n * PERIOD) for n in range(1, fires + 1)]
    return [f"{text.removesuffix('Z').removesuffix('.000')}" for text in told]


def plain(text: str) -> str:
    """A logical time of zone UTC in the form of `expected`."""
    instant = text.removesuffix("[UTC]").removesuffix("+00:00")
    return instant[:-3] if "." in instant else instant


MakeYard = Callable[..., Yard]


@pytest.fixture
def make_yard(tmp_path: Path, own_server: OwnServer, processes: Processes) -> Iterator[MakeYard]:
    yards: list[Yard] = []

    def make(more: str = TICK, clock_ms: int | None = CLOCK) -> Yard:
        server = own_server(options={"appendonly": "yes"})
        yards.append(Yard(tmp_path, server, processes, more, clock_ms))
        return yards[-1]

    yield make
    for yard in yards:
        yard.store.close()


#: where the second beat process dies, each time it has come back, and at which arrival
DEATHS = (
    "fire.planned=kill:2",
    "fire.done=kill:1",
    "fire.told=kill:2",
    "fire.done=kill:3",
    "fire.planned=kill:1",
    "fire.done=kill:2",
)


@pytest.mark.slow
def test_two_beats_one_killed_200_fires_exactly_200_jobs(make_yard: MakeYard, tmp_path: Path) -> None:
    """Without a leader; killed with SIGKILL between plan and script, and between script and what follows it."""
    yard = make_yard()
    yard.beat()
    left = 200
    for number, order in enumerate(DEATHS):
        directory = tmp_path / f"faults-{number}"
        directory.mkdir()
        victim = yard.beat(Faultpoints(directory, order))
        while victim.alive and left:
            yard.pass_time(1)
            left -= 1
        assert victim.wait() == -9, "it has got there"
    yard.pass_time(left)
    assert yard.depth == 200
    assert [plain(text) for text in yard.times()] == expected(200)
    assert yard.type("schedules", "list", "--json")[0] == 0
    fates = Dump(yard.server.client(), yard.store.key_prefix)["fates"]
    assert fates == {"tick emitted": "200"}


def test_one_beat_killed_at_each_point_loses_nothing_and_repeats_nothing(
    make_yard: MakeYard, tmp_path: Path
) -> None:
    yard = make_yard()
    for number, point in enumerate(("fire.planned", "fire.done", "fire.told")):
        directory = tmp_path / f"faults-{number}"
        directory.mkdir()
        victim = yard.beat(Faultpoints(directory, f"{point}=kill:1"))
        yard.store.advance_clock(5 * PERIOD)
        assert victim.wait() == -9
    yard.beat()
    yard.wait(lambda: yard.depth >= 15, "the fires that are left")
    yard.pass_time(5)
    assert [plain(text) for text in yard.times()] == expected(20)


def test_two_beats_whose_connections_are_cut(make_yard: MakeYard) -> None:
    yard = make_yard()
    first, second = yard.beat(), yard.beat()
    client = yard.server.client()
    for _ in range(20):
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        yard.store.close()  # its own lines were cut as well
        yard.pass_time(5)
    assert [plain(text) for text in yard.times()] == expected(100)
    assert first.alive
    assert second.alive


def test_a_worker_runs_the_fire_and_people_see_it(make_yard: MakeYard, ledger: Ledger) -> None:
    yard = make_yard(
        TICK.replace(f'"{PERIOD}ms"', '"500ms"\ntimezone = "Asia/Shanghai"')
        + '[schedules.never]\ntask = "t"\nat = "2020-01-01T00:00:00Z"\noverlap = "allow"\n',
        clock_ms=None,
    )
    code, text = yard.type("schedules", "list")
    assert code == 0
    assert text.count("no beat process has run with it yet") == 2
    yard.processes.spawn_worker([TIDEGATE, "worker", "-P", "solo", "-c", "1", "--config", str(yard.config)])
    yard.beat()

    def notes() -> list[dict[str, Any]]:
        return [dict(entry.info) for entry in ledger.entries() if entry.kind == "fired"]

    yard.wait(lambda: {note["step"] for note in notes()} == {"cn", "followed"}, "a fire and what follows it")
    here = next(note for note in notes() if note["step"] == "followed")
    assert (here["schedule"], here["zone"]) == ("tick", "Asia/Shanghai")
    assert here["at"].endswith("+08:00")
    assert any(
        n["step"] == "cn" and n["operation"] == here["operation"] and n["at"] == here["at"] for n in notes()
    )

    code, text = yard.type("schedules", "history", "tick", "-n", "200", "--json")
    told = json.loads(text)
    assert (code, told["id"], told["task"]) == (0, "tick", f"{TASKS}.report")
    (row,) = [row for row in told["fires"] if row["operation"] == here["operation"]]
    assert (row["fate"], row["fires"], row["reason"], row["into"]) == ("emitted", 1, None, None)
    assert 0 <= row["lag"] < 5
    code, text = yard.type("schedules", "history", "tick")
    assert (code, "emitted" in text, "decided up to" in text) == (0, True, True)
    code, text = yard.type("schedules", "list")
    assert (code, "none yet" in text, "emitted" in text) == (0, True, True)
    code, text = yard.type("schedules", "history", "nobody")
    assert (code, "no schedule 'nobody'" in text) == (1, True)


def test_a_schedule_that_cannot_be_read_stops_beat_with_its_key_and_line(make_yard: MakeYard) -> None:
    yard = make_yard(TICK + '[schedules.bad]\ntask = "t"\ncron = "61 * * * *"\noverlap = "allow"\n')
    code, text = yard.type("beat")
    assert code == 4
    assert "schedules.bad.cron (line " in text
    assert "61 is out of range" in text
