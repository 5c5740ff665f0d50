"""Must: lost replies at 200 random cut points, also after the job has finished and under SCRIPT FLUSH: each effect
once, and the caller learns the truth.

A producer and a worker reach the store through proxies that cut. The verdict is the ledger's: a job that a producer
was told is in ran exactly once, one that it was told is not in never ran, one that nobody can know about ran at most
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.lossy import Again, Place, Round, Way, plan, script
from tests.faults.offer import Account, Told, offer
from tests.harness.fixtures import MakeProxy, OwnServer
from tests.harness.wait import wait_until
from tests.integration.lease.stage import MakeStage, Stage

from tidegate.client.producer import Producer, with_settings
from tidegate.config import Settings
from tidegate.store.keyspace import KEYS
from tidegate.store.script import library
from tidegate.worker import identity

SEED = 20261201
LEASE = 3.0
PATIENT, HASTY = 45.0, 0.3  # seconds that a producer waits for the store
KEYED = (Way.KEYED, Way.NAMED, Way.MANY_KEYED, Way.STORE_KEYED)


class Trial:
    """One fleet with one worker, both ends behind proxies; `play` runs rounds."""

    def __init__(self, stage: Stage, to_worker: Any, to_producer: Any) -> None:
        self.stage, self.to_worker, self.to_producer = stage, to_worker, to_producer
        self.client = stage.server.client()
        self.patient, self.hasty = self._producer(PATIENT), self._producer(HASTY)
        self.account = Account()
        self.cuts = 0
        self.expired = 0  # leases that ended because nobody knew of them
        self.worker = stage.worker()
        self._thread = ThreadPoolExecutor(1)
        self._jobs = 0
        self._offer(Way.BARE, 1)  # the first fencing token in the ledger is then the first of all
        stage.wait_done([*self.account.accepted], 30)

    def _producer(self, patience: float) -> Producer:
        settings: Settings = self.stage.settings
        broker = replace(settings.broker, url=self.to_producer.url)
        fleet = replace(settings.fleet, enqueue_timeout=patience)
        return with_settings(replace(settings, broker=broker, fleet=fleet))

    def close(self) -> None:
        self._thread.shutdown()
        for producer in (self.patient, self.hasty):
            identity.detach(producer.app)
            producer.fleet.close()
            producer.app.close()

    def _names(self, number: int) -> list[str]:
        self._jobs += number
        return [f"job-{n}" for n in range(self._jobs - number, self._jobs)]

    # --- rounds

    def play(self, one: Round) -> None:
        print(one)
        if one.place in (Place.ENQUEUE, Place.HANDSHAKE):
            self._cut_producer(one)
        else:
            self._cut_worker(one)
        self.cuts += 1
        assert self.worker.alive, self.worker.tail()

    def _cut_producer(self, one: Round) -> None:
        sender = self.hasty if one.again is Again.NEVER else self.patient
        sender.fleet.store.snapshot()  # it has a connection, which nobody refuses
        # else the answer that is lost may be "unknown function", and the jobs that are waited for are not there
        self.client.function_load(library().source, replace=True)
        if one.place is Place.HANDSHAKE:
            self.to_producer.cut()
        elif one.again is not Again.AT_ONCE:
            self.to_producer.refuse()
        cut = one.order(self.to_producer)
        jobs = self._names(one.jobs)
        told: Future[list[Told]] = self._thread.submit(offer, sender, one.way, jobs)
        cut.wait()
        if one.again.late:
            self.stage.wait_done(jobs if one.after == 1 and one.jobs <= 100 else jobs[:100], 60)
            self.stage.wait_empty(60)
        if one.again.flushed:
            self._flush()
        if one.again is not Again.NEVER:
            self.to_producer.heal()
        self.account.write(told.result(timeout=60))
        self.to_producer.heal()
        if one.way in KEYED and (one.again is Again.NEVER or one.again.late):
            self.account.write_again(offer(self.patient, one.way, jobs))

    def _cut_worker(self, one: Round) -> None:
        if one.again is not Again.AT_ONCE:
            self._wait_connected()
            if one.place is not Place.REGISTER:  # which may need a connection of its own
                self.to_worker.refuse()
        cut = one.order(self.to_worker)  # before anything that makes the worker say what is to be cut
        if one.place is Place.REGISTER:
            for worker in self.stage.store.snapshot().workers:
                self.stage.store.unregister(worker.worker_id)  # as if it had been silent for very long
        self._offer(one.way, one.jobs)
        for _ in range(60):
            if cut.done.wait(0.5):
                break
            self._offer(one.way, 1)
        cut.wait(timeout=1)
        if one.again is Again.EXPIRED:
            self._outlive()
        if one.again.flushed:
            self._flush()
        self.to_worker.heal()

    def _flush(self) -> None:
        self.client.script_flush()
        self.client.function_flush()

    def _wait_connected(self) -> None:
        """Until the worker claims and beats: it has all its connections again."""
        self.stage.wait_empty(60)
        since = self._now()
        beats = f"{self.stage.store.key_prefix}workers"
        wait_until(
            lambda: self.client.zcount(beats, f"({since}", "+inf"), self.stage.processes.logs, timeout=30
        )

    def _now(self) -> int:
        seconds, micros = self.client.time()
        return int(seconds * 1000 + micros // 1000)

    def _offer(self, way: Way, number: int) -> None:
        self.account.write(offer(self.patient, way, self._names(number)))

    def _outlive(self) -> None:
        """The claim's leases end unheard of, and the reply of the reap that judged them is lost as well."""
        leased = self.stage.counts()[1]
        if leased == 0:
            return  # this claim was answered with nothing
        self.expired += leased
        self.to_worker.lose_reply(lambda frame: script(frame) == "reap" and self._due() == 0)
        wait_until(lambda: self.stage.counts()[1] == 0, self.stage.processes.logs, timeout=30)

    def _due(self) -> int:
        """Leases that have not ended yet."""
        return int(self.client.zcount(f"{self.stage.store.key_prefix}leases", self._now(), "+inf"))

    # --- the end

    def finish(self) -> None:
        """Everything accepted has run, the worker leaves, and nothing is left behind."""
        self.stage.wait_done([*self.account.accepted], 60)
        self.stage.wait_empty(60)
        self.worker.term()
        assert self.stage.ended(self.worker, 30) == 0, self.worker.tail()
        now = self.stage.store.snapshot()
        counts = {name: (q.waiting, q.delayed, q.running, q.failed, q.dead) for name, q in now.queues.items()}
        assert set(counts.values()) == {(0, 0, 0, 0, 0)}, counts
        assert (now.failed, now.dead, now.workers) == (0, 0, ())
        wait_until(
            lambda: self.stage.store.promote() == 0 and not self._left(), lambda: f"{self._left()} to go"
        )

    def _left(self) -> list[str]:
        """Keys whose lifetime is over, and traces without an end."""
        prefix, left = self.stage.store.key_prefix, []
        for key in self.client.scan_iter(match=f"{prefix}*", count=1000):
            name = key.decode().removeprefix(prefix)
            kind = next((k for k in KEYS if k.pattern in (name, f"{name.partition(':')[0]}:*")), None)
            forever = kind is not None and (kind.lifetime.startswith("fleet") or kind.owner == "kombu")
            if not forever and self.client.ttl(key) < 0:
                left.append(name)
        return left

    def judge(self) -> None:
        """From the ledger alone."""
        verdict = self.stage.verdict()
        account, ran = self.account, set(verdict.by_job())
        assert verdict.lost() == set()
        assert verdict.unwanted() == set()
        assert verdict.overlaps(possible=True) == []
        assert verdict.reruns() == {}, self.worker.text()
        assert verdict.accepted == set(account.accepted)
        assert ran - verdict.accepted <= account.maybe, "a job ran that no producer knows of"
        fences = self.stage.fences()
        unheard = max(fences) - min(fences) + 1 - len(fences)
        assert unheard <= self.expired, "a claim asked again gives the leases of its first answer"
        unknown = len(account.maybe)
        print(f"{self.cuts} cuts, {len(ran)} jobs ran, {unheard} leases unheard of, {unknown} jobs unknown")


@pytest.fixture
def trial(
    make_stage: MakeStage, own_server: OwnServer, make_proxy: MakeProxy, tmp_path: Path
) -> Iterator[Trial]:
    server = own_server(options={"appendonly": "yes"})
    to_worker, to_producer = make_proxy(server.url), make_proxy(server.url)
    found = Trial(make_stage(server, url=to_worker.url, lease=LEASE), to_worker, to_producer)
    yield found
    found.close()


def run(trial: Trial, deals: int) -> None:
    print(f"seed {SEED}")
    for one in plan(SEED, deals):
        trial.play(one)
    trial.finish()
    trial.judge()


@pytest.mark.slow
def test_twenty_five_cuts(trial: Trial) -> None:
    run(trial, 1)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_two_hundred_cuts(trial: Trial) -> None:
    run(trial, 8)
