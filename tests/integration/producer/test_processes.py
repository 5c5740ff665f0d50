"""Producers that fork and producers with threads."""

from __future__ import annotations

import sys
import threading
from typing import Any

from tests.harness.processes import Processes
from tests.integration.producer.shop import Shop

from tidegate import Receipt, call, enqueue, enqueue_many

FORKING = """
import os, sys
from tidegate import Receipt, call, enqueue, enqueue_many
first = enqueue("t")
children = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        ok = enqueue("t").status == "accepted"
        ok = ok and all(isinstance(one, Receipt) for one in enqueue_many([call("t")] * 20))
        ok = ok and first.state() is not None
        os._exit(0 if ok else 1)
    children.append(pid)
    assert enqueue("t").status == "accepted"
assert all(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 for pid in children)
assert enqueue("t").status == "accepted"
"""


def test_a_process_that_forks_shares_no_connection(shop: Shop, processes: Processes) -> None:
    proc = processes.spawn([sys.executable, "-c", FORKING], env=shop.env)
    assert proc.wait() == 0, proc.tail()
    assert shop.counts().depth == 1 + 4 + 4 * 21 + 1


def test_threads_share_one_producer(shop: Shop) -> None:
    answers: list[Any] = []

    def produce(number: int) -> None:
        for _ in range(20):
            answers.append(enqueue("t", tenant=f"tenant-{number}"))
        answers.extend(enqueue_many([call("t")] * 50, tenant=f"tenant-{number}"))

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(one, Receipt) for one in answers)
    assert len({one.operation_id for one in answers}) == len(answers) == 6 * 70
    assert shop.counts().depth == 6 * 70


def test_a_plain_process_finds_its_settings(shop: Shop, processes: Processes) -> None:
    """TIDEGATE_CONFIG, or tidegate.toml in the working directory (DESIGN §9)."""
    code = 'from tidegate import enqueue; assert enqueue("t", queue="small").queue == "small"'
    by_name = processes.spawn([sys.executable, "-c", code], env=shop.env)
    by_place = processes.spawn([sys.executable, "-c", code], cwd=shop.config.parent)
    assert by_name.wait() == 0, by_name.tail()
    assert by_place.wait() == 0, by_place.tail()
    assert shop.counts("small").depth == 2


def test_settings_that_cannot_be_used_are_said_at_first_use(processes: Processes, shop: Shop) -> None:
    code = (
        "from tidegate import ConfigError, enqueue\n"
        "try:\n    enqueue('t')\n"
        "except ConfigError as error:\n    print(error)\n    raise SystemExit(error.exit_code)\n"
    )
    config = shop.config.with_name("broken.toml")
    config.write_text("[queues.default]\nmax_dept = 3\n")
    proc = processes.spawn([sys.executable, "-c", code], env={"TIDEGATE_CONFIG": str(config)})
    assert proc.wait() == 4, proc.tail()
    assert "max_depth" in proc.text()


def test_an_app_named_in_the_settings_is_used(shop: Shop, processes: Processes) -> None:
    shop.config.with_name("their_app.py").write_text(
        "from celery import Celery\napp = Celery('theirs')\n\n\n@app.task(queue_option=1)\ndef mine(x):\n    return x\n"
    )
    text = shop.config.read_text().replace("[fleet]", '[fleet]\ncelery_app = "their_app:app"')
    shop.config.write_text(text.replace('imports = ["tests.integration.producer.work"]', ""))
    code = (
        "from tidegate import InvalidJob, enqueue\n"
        "assert enqueue('their_app.mine', args=(1,)).status == 'accepted'\n"
        "from their_app import app, mine\n"
        "assert mine.delay(1).id\n"
        "assert enqueue(mine, args=(1,)).status == 'accepted'\n"
    )
    proc = processes.spawn([sys.executable, "-c", code], env=shop.env, cwd=shop.config.parent)
    assert proc.wait() == 0, proc.tail()
    assert shop.counts().depth == 3
