"""The ledger is written by every kind of worker and survives kill -9 of the writer."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest
from tests.harness import ledger as book
from tests.harness import procfs
from tests.harness.book import Ledger
from tests.harness.processes import Processes, celery_worker
from tests.harness.server import Server
from tests.harness.verifier import Verifier
from tests.harness.wait import wait_until

APP = "tests.integration.harness.ledger_tasks"


def send(server: Server, processes: Processes, task: str, jobs: list[str]) -> None:
    script = f"import sys; from {APP} import app, {task}\nwith app.producer_pool.acquire(block=True) as p:\n"
    script += f" for job in sys.argv[1:]: {task}.apply_async((job,), producer=p)"
    sender = processes.spawn([sys.executable, "-c", script, *jobs], env={"BROKER_URL": broker(server)})
    assert sender.wait() == 0, sender.tail()


def broker(server: Server) -> str:
    return f"redis+socket://{server.socket_path}"


def test_what_is_written_can_be_read(ledger: Ledger) -> None:
    book.accepted("job", tenant="acme")
    attempt = book.begin("job", tenant="acme")
    book.end(attempt)
    accepted, begin, end = ledger.entries()
    assert (accepted.kind, accepted.job) == ("accepted", "job")
    assert (begin.kind, begin.attempt, begin.info) == ("begin", attempt, {"tenant": "acme"})
    assert begin.process == procfs.identify(os.getpid())
    assert end.at >= begin.at > 0
    assert end.monotonic >= begin.monotonic > 0
    assert Verifier(ledger.entries()).lost() == set()


def test_without_its_address_the_ledger_refuses_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(book.VARIABLE, raising=False)
    with pytest.raises(book.LedgerError, match=book.VARIABLE):
        book.begin("job")


def test_threads_write_side_by_side(ledger: Ledger) -> None:
    def work(number: int) -> None:
        for step in range(20):
            book.end(book.begin(f"{number}-{step}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.count("begin") == ledger.count("end") == 160


def test_a_forked_child_does_not_share_its_parents_connection(ledger: Ledger, processes: Processes) -> None:
    script = (
        "import os; from tests.harness import ledger\n"
        "ledger.note('parent')\n"
        "children = []\n"
        "for n in range(4):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        for step in range(50): ledger.end(ledger.begin(f'{n}-{step}'))\n"
        "        os._exit(0)\n"
        "    children.append(pid)\n"
        "for step in range(50): ledger.note('parent')\n"
        "assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)\n"
    )
    forker = processes.spawn([sys.executable, "-c", script])
    assert forker.wait() == 0, forker.tail()
    entries = ledger.entries()
    assert sum(entry.kind == "parent" for entry in entries) == 51
    begun = [entry for entry in entries if entry.kind == "begin"]
    assert len({entry.job for entry in begun}) == 200
    assert {entry.worker for entry in begun} == {forker.id}
    assert len({entry.process for entry in begun}) == 4


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_tasks_of_every_pool_write_to_it(
    ledger: Ledger, processes: Processes, own_broker: Server, pool: str
) -> None:
    worker = processes.spawn_worker(
        celery_worker(APP, "--pool", pool, "--concurrency", "2", "--loglevel", "INFO", "--without-mingle"),
        env={"BROKER_URL": broker(own_broker)},
    )
    send(own_broker, processes, "record", [f"job-{number}" for number in range(20)])
    wait_until(lambda: ledger.count("end") == 20, worker.tail, timeout=30)
    verdict = Verifier(ledger.entries())
    assert len(verdict.by_job()) == 20
    assert {attempt.worker for attempt in verdict.attempts} == {worker.id}
    assert all((attempt.process == worker.id) == (pool != "prefork") for attempt in verdict.attempts)


def test_what_a_killed_process_wrote_is_there_and_its_death_is_known(
    ledger: Ledger, processes: Processes
) -> None:
    script = "import signal; from tests.harness import ledger\nledger.begin('job')\nsignal.pause()"
    victim = processes.spawn([sys.executable, "-c", script])
    wait_until(lambda: ledger.count("begin"), victim.tail)
    before = procfs.boot_time()
    os.kill(victim.pid, signal.SIGKILL)  # behind the harness's back: only the witness can see it
    victim.wait()
    wait_until(lambda: ledger.count("death"), "the witness's report")
    (attempt,) = Verifier(ledger.entries()).attempts
    assert not attempt.finished
    assert before - 1 <= attempt.certain[-1].end <= attempt.possible[-1].end <= procfs.boot_time()


def test_a_process_that_died_before_the_witness_looked_is_buried_too(
    ledger: Ledger, processes: Processes
) -> None:
    script = "import os; from tests.harness import ledger\nledger.begin('job')\nos._exit(0)"
    victims = [processes.spawn([sys.executable, "-c", script]) for _ in range(4)]
    for victim in victims:
        victim.wait()
    wait_until(lambda: ledger.count("death") == 4, lambda: f"{ledger.count('death')} deaths of 4")


def test_kills_and_freezes_by_the_test_are_recorded(ledger: Ledger, processes: Processes) -> None:
    script = "import signal; from tests.harness import ledger\nledger.begin('job')\nsignal.pause()"
    victim = processes.spawn([sys.executable, "-c", script])
    wait_until(lambda: ledger.count("begin"), victim.tail)
    victim.freeze()
    assert procfs.is_stopped(victim.id)
    victim.thaw()
    victim.kill9()
    wait_until(lambda: ledger.count("death") == 2, "the test's and the witness's report")
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds[:3] == ["begin", "frozen", "thawed"]
    (attempt,) = Verifier(ledger.entries()).attempts
    assert len(attempt.certain) == 2, "before the freeze and after the thaw"
