"""Real processes under a test's control: spawn, kill -9, freeze, see children, leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from . import guard, procfs
from .procfs import ProcessId
from .wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
PROC_VARIABLE = "HARNESS_PROC"

#: never inherited from whoever runs the tests: they would configure the processes under test
_FOREIGN = ("TIDEGATE_", "CELERY_", "LEDGER_", "PYTEST_", "HARNESS_", "COV_CORE_")


class Recorder(Protocol):
    """Told what happened to a process (`Ledger.record_process` is one). Times: CLOCK_BOOTTIME seconds."""

    def __call__(self, what: str, process: ProcessId, *, after: float, before: float) -> None:
        """`what` (death, frozen, thawed) happened between `after` and `before`."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process under test: ours without foreign settings, the repository importable."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    path = [str(ROOT), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    environ.update(PYTHONPATH=os.pathsep.join(path), PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1")
    environ.update(extra or {})
    return environ


def celery_worker(module: str, *arguments: str) -> list[str]:
    """The command of a plain Celery worker: `celery -A module worker ...`."""
    return [sys.executable, "-m", "celery", "-A", module, "worker", *arguments]


class Proc:
    """One spawned process and everything below it. Output of all of them goes to one log file."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        record: Recorder | None = None,
    ) -> None:
        self.argv = list(argv)
        self.log = log
        self._record = record
        self.mark = uuid.uuid4().hex  # in the environment of this process and of all below it
        environ = environment(env)
        environ.update({PROC_VARIABLE: self.mark, guard.RUN_VARIABLE: guard.RUN})
        guard.register_run()
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environ,
                cwd=cwd,
                start_new_session=True,
            )
        found = procfs.identify(self.popen.pid)
        assert found is not None, "a child that was not waited for keeps its /proc entry"
        self.id = found
        guard.register_process(found.pid, found.start)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def tail(self, lines: int = 40) -> str:
        return "\n".join([f"--- {' '.join(self.argv)}", *self.text().splitlines()[-lines:]])

    def wait(self, timeout: float = 30.0) -> int:
        """The exit status (negative: the signal). AssertionError with the log's tail if it goes on."""
        wait_until(
            lambda: self.popen.poll() is not None,
            lambda: f"the end of pid {self.pid}\n{self.tail()}",
            timeout,
        )
        return self.popen.returncode

    def wait_for_text(self, text: str, timeout: float = 30.0, count: int = 1) -> None:
        """Until the log holds `text` at least `count` times; a process that has ended is a failure."""

        def seen() -> bool:
            if self.text().count(text) >= count:
                return True
            assert self.alive, f"pid {self.pid} ended with {self.popen.returncode}\n{self.tail()}"
            return False

        wait_until(seen, lambda: f"{text!r} in the log\n{self.tail()}", timeout)

    def send(self, number: int) -> None:
        procfs.signal_process(self.id, number)

    def term(self) -> None:
        self.send(signal.SIGTERM)

    def kill9(self) -> None:
        """SIGKILL to this process alone (its children live on); returns when it is dead."""
        kill9(self.id, self._record, reap=self.popen.wait)

    def freeze(self) -> None:
        """SIGSTOP to this process alone; returns when every thread of it stands still."""
        freeze(self.id, self._record)

    def thaw(self) -> None:
        thaw(self.id, self._record)

    def children(self) -> list[ProcessId]:
        return procfs.children(self.pid)

    def family(self) -> list[ProcessId]:
        """This process, its descendants and its orphans, all alive."""
        return _families([self])

    def kill_family(self) -> None:
        """SIGKILL to all of `family()` until none is left; collects the exit status."""
        _kill_families([self])


def _families(procs: Sequence[Proc]) -> list[ProcessId]:
    own = [proc.id for proc in procs if procfs.is_alive(proc.id)]
    orphans = procfs.marked(PROC_VARIABLE, {proc.mark for proc in procs})
    return list(dict.fromkeys([*own, *procfs.descendants(one.pid for one in own), *orphans]))


def _kill_families(procs: Sequence[Proc]) -> None:
    def none_left() -> bool:
        # A process that is just forking may escape one pass; the last pass finds nothing.
        left = _families(procs)
        for process in left:
            procfs.signal_process(process, signal.SIGKILL)
        for proc in procs:
            proc.popen.poll()
        return not left

    wait_until(none_left, lambda: f"the end of {_families(procs)}")
    for proc in procs:
        proc.popen.wait(timeout=10)


def kill9(
    process: ProcessId, record: Recorder | None = None, reap: Callable[[float], int] | None = None
) -> None:
    """SIGKILL; returns when the process is dead. `reap` collects its status if it is our own child."""
    after = procfs.boot_time()
    sent = procfs.signal_process(process, signal.SIGKILL)
    if reap is not None:
        reap(10.0)
    wait_until(lambda: not procfs.is_alive(process), f"the death of {process}")
    if sent and record is not None:
        record("death", process, after=after, before=procfs.boot_time())


def freeze(process: ProcessId, record: Recorder | None = None) -> None:
    """SIGSTOP; returns when every thread stands still."""
    after = procfs.boot_time()
    assert procfs.signal_process(process, signal.SIGSTOP), f"{process} is gone"
    wait_until(lambda: procfs.is_stopped(process), f"{process} to stand still")
    if record is not None:
        record("frozen", process, after=after, before=procfs.boot_time())


def thaw(process: ProcessId, record: Recorder | None = None) -> None:
    """SIGCONT. A process that died meanwhile is not an error: SIGKILL works on a frozen one too."""
    after = procfs.boot_time()
    procfs.signal_process(process, signal.SIGCONT)
    if record is not None:
        record("thawed", process, after=after, before=procfs.boot_time())


class Processes:
    """All processes of one test, in one directory of logs; `close()` leaves none of them."""

    def __init__(self, directory: Path, record: Recorder | None = None) -> None:
        self.directory = directory
        self.record = record
        self.env: dict[str, str] = {}  # for every process spawned from now on
        self.all: list[Proc] = []

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        name: str = "process",
    ) -> Proc:
        log = self.directory / f"{name}-{len(self.all)}.log"
        proc = Proc(argv, log=log, env={**self.env, **(env or {})}, cwd=cwd, record=self.record)
        self.all.append(proc)
        return proc

    def spawn_worker(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        ready: str = " ready.",
        timeout: float = 30.0,
    ) -> Proc:
        """A worker (`celery_worker(...)`, or `tidegate worker ...`); returns when its log says ready."""
        proc = self.spawn(argv, env=env, cwd=cwd, name="worker")
        proc.wait_for_text(ready, timeout)
        return proc

    def logs(self) -> str:
        return "\n".join(proc.tail() for proc in self.all)

    def close(self) -> None:
        """SIGKILL to whatever is left."""
        if self.all:
            _kill_families(self.all)
