"""A folder with a tidegate.toml, `tidegate up` in it as users start it, and the questions that tests ask."""

from __future__ import annotations

import re
import signal
import socket
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from celery import Celery
from tests.harness import ledger
from tests.harness.book import Ledger
from tests.harness.processes import Proc, Processes
from tests.harness.procfs import ProcessId, identify, is_alive
from tests.harness.verifier import Verifier
from tests.harness.wait import wait_until

from tidegate import embedded
from tidegate.config import Settings, load
from tidegate.worker.install import fleet_of, install

TIDEGATE = str(Path(sys.executable).with_name("tidegate"))
SETTINGS = """\
[fleet]
name = "{name}"
imports = ["tests.integration.up.jobs"]
[queues.default]
max_depth = 100000
[tenants.default]
max_concurrency = 100
rate = "unlimited"
[observability]
metrics_address = "{address}"
"""


class Stage:
    """One folder. more: further settings."""

    def __init__(
        self, home: Path, book: Ledger, processes: Processes, more: str = "", address: str = "127.0.0.1:0"
    ) -> None:
        self.home, self.book, self.processes = home, book, processes
        self.config = home / "tidegate.toml"
        self.config.write_text(SETTINGS.format(name=f"u{uuid.uuid4().hex[:8]}", address=address) + more)
        self.settings: Settings = load(self.config, {})
        self._app: Celery | None = None

    def close(self) -> None:
        self.processes.close()
        self.disconnect()
        embedded.stop(self.settings.data_dir)

    # --- processes

    def up(self, *words: str, terminal: bool = False, ready: int = 1) -> Proc:
        """`tidegate up WORDS` in the folder; returns when that many workers say that they are ready."""
        before = [sys.executable, "-m", "tests.integration.up.terminal"] if terminal else []
        proc = self.processes.spawn([*before, TIDEGATE, "up", *words], cwd=self.home, name="up")
        if ready:
            proc.wait_for_text(" ready.", count=ready)
        return proc

    @staticmethod
    def part(up: Proc, name: str) -> ProcessId:
        """The process of a part, by what `up` printed last about it; it must live."""
        found = re.findall(rf"{name} (?:is started again,|) *pid (\d+)", up.text())
        assert found, up.tail()
        return process(int(found[-1]))

    def server(self) -> ProcessId | None:
        """The embedded server's process, if there is one."""
        found = embedded.status(self.settings.data_dir).endpoint
        return identify(found.pid) if found else None

    # --- jobs

    @property
    def app(self) -> Celery:
        if self._app is None:
            self._app = Celery("producer", set_as_current=False)
            install(self._app, self.settings)
        return self._app

    def disconnect(self) -> None:
        """This process is no client of the store any more."""
        if self._app is not None:
            fleet_of(self._app).close()
            self._app.close()
            self._app = None

    def send(self, number: int, seconds: float, task: str = "work") -> list[str]:
        """Publish jobs; the ledger hears of each that was accepted."""
        sent = [f"job-{uuid.uuid4().hex[:10]}" for _ in range(number)]
        for job in sent:
            self.app.send_task(task, (job, seconds), headers={"operation_id": job})
            ledger.accepted(job)
        return sent

    def wait(self, kind: str, number: int, timeout: float = 30.0) -> None:
        """Until the ledger has that many entries of a kind."""
        why = f"{number} times {kind}"
        wait_until(
            lambda: self.book.count(kind) >= number, lambda: f"{why}\n{self.processes.logs()}", timeout
        )

    def verdict(self) -> Verifier:
        return Verifier(self.book.entries())


def process(pid: int) -> ProcessId:
    """A process that lives."""
    found = identify(pid)
    assert found is not None, f"{pid} is dead"
    return found


def wait_gone(found: Sequence[ProcessId], up: Proc, timeout: float = 10.0) -> None:
    wait_until(
        lambda: not any(map(is_alive, found)),
        lambda: f"the end of {list(filter(is_alive, found))}\n{up.tail()}",
        timeout,
    )


def left(found: Sequence[ProcessId]) -> list[ProcessId]:
    return [one for one in found if is_alive(one)]


def free_address() -> str:
    """One that stays the same in all lives of a fleet: a new exporter may find the old one still there."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


CTRL_C = signal.SIGUSR1  # to the terminal of `Stage.up(terminal=True)`
