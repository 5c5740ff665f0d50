"""Must: max_depth = 100 never holds more than 100 unfinished jobs, whoever sends and however."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.harness.fixtures import OwnServer
from tests.harness.processes import Proc, Processes
from tests.harness.wait import wait_until
from tests.integration.producer.conftest import MakeShop
from tests.integration.producer.flood import WAYS
from tests.integration.producer.shop import Shop

from tidegate.domain.job import Outcome, OutcomeKind
from tidegate.store import ClaimRequest, WorkerInfo

LIMIT = 100
#: counts the records of jobs in one instant, past all counters of the store
COUNT = "return #redis.call('KEYS', ARGV[1] .. 'job:*')"


class Drain:
    """A worker without bodies: makes room, and looks how many jobs there are."""

    def __init__(self, shop: Shop, client: Any) -> None:
        self.shop, self.client = shop, client
        self.finished = self.most = 0
        self._outcomes: tuple[Outcome, ...] = ()
        shop.store.register(WorkerInfo("drain", "test", 1, ("default",), 4))

    def jobs(self) -> int:
        found = int(self.client.eval(COUNT, 0, self.shop.store.key_prefix))
        self.most = max(self.most, found)
        return found

    def turn(self) -> int:
        """Settle what was claimed before, claim some more; how many."""
        self.jobs()
        reply = self.shop.store.claim(ClaimRequest("drain", ("default",), 4, self._outcomes))
        self.finished += len(self._outcomes)
        self._outcomes = tuple(Outcome(job.ref, OutcomeKind.OK) for job in reply.jobs)
        self.jobs()
        return len(reply.jobs)


def flood(
    make_shop: MakeShop, own_server: OwnServer, processes: Processes, producers: int, seconds: float
) -> Drain:
    server = own_server()
    shop = make_shop(f"[queues.default]\nmax_depth = {LIMIT}\n", server=server)
    drain = Drain(shop, server.client())
    module = "tests.integration.producer.flood"
    procs: list[Proc] = [
        processes.spawn(
            [sys.executable, "-m", module, str(seconds), str(seed)], env=shop.env, cwd=Path(), name="flood"
        )
        for seed in range(producers)
    ]

    def all_ended() -> bool:
        drain.turn()
        return not any(proc.alive for proc in procs)

    wait_until(all_ended, processes.logs, timeout=seconds + 100, interval=0.005)
    met: Counter[str] = Counter()
    for proc in procs:
        assert proc.wait() == 0, proc.tail()
        told = json.loads(proc.text().splitlines()[-1])
        assert told["others"] == []
        assert told["slowest"] < 9, "a refusal is an answer, not a time-out"
        met.update(told["met"])
    accepted = sum(count for what, count in met.items() if what.endswith("accepted"))
    for way in WAYS:
        assert met[f"{way} accepted"], met
        assert met[f"{way} full"], met
    wait_until(
        lambda: drain.turn() == 0 and drain.jobs() == 0, lambda: f"{drain.jobs()} jobs to end", timeout=30
    )
    assert drain.finished == accepted, "what was refused left nothing, what was accepted came"
    return drain


def test_two_producers(make_shop: MakeShop, own_server: OwnServer, processes: Processes) -> None:
    drain = flood(make_shop, own_server, processes, producers=2, seconds=2.0)
    assert drain.most == LIMIT


@pytest.mark.slow
def test_eight_producers(make_shop: MakeShop, own_server: OwnServer, processes: Processes) -> None:
    drain = flood(make_shop, own_server, processes, producers=8, seconds=15.0)
    assert drain.most == LIMIT
