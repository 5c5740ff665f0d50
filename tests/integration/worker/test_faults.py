"""Whatever happens to the server and to the connections, under load: every job once, and the worker goes on.

The larger faults (power cuts, frozen processes, half-open connections) are in tests/faults.
"""

from __future__ import annotations

from collections import Counter

import pytest
from celery import chain
from tests.harness.processes import Proc
from tests.integration.worker.stage import POOLS, MakeStage, Sent, Stage

#: one pool in `make test`, all of them in `make test-all`
EACH = ["prefork", *(pytest.param(pool, marks=pytest.mark.slow) for pool in POOLS if pool != "prefork")]


def load(stage: Stage, number: int, seconds: float) -> list[Sent]:
    return [stage.run("nap", seconds) for _ in range(number)]


def done(stage: Stage) -> Counter[str]:
    """How often each body has ended."""
    entries = stage.book.entries()
    began = {entry.attempt: entry.job for entry in entries if entry.kind == "begin"}
    return Counter(began[entry.attempt] for entry in entries if entry.kind == "end")


def wait_done(stage: Stage, number: int, timeout: float = 60.0) -> None:
    stage.wait(lambda: len(done(stage)) >= number, f"{number} jobs", timeout)


def all_once(stage: Stage, sent: list[Sent], *workers: Proc) -> None:
    wait_done(stage, len(sent))
    stage.wait_idle()
    assert set(done(stage)) == {one.job for one in sent}
    assert [job for job in done(stage) if stage.begun(job) != 1] == []
    assert (stage.counts().failed, stage.counts().dead) == (0, 0)
    assert all(worker.alive for worker in workers)


@pytest.mark.parametrize("pool", EACH)
def test_script_flush(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), load(stage, 30, 0.05)
    admin = stage.server.client()
    for milestone in (1, 5, 10, 20):
        wait_done(stage, milestone)
        admin.script_flush()
    all_once(stage, sent, worker)
    assert worker.text().count("Connected to") == 1


@pytest.mark.parametrize("pool", EACH)
def test_every_connection_is_killed(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), load(stage, 30, 0.1)
    admin = stage.server.client()
    for milestone in (1, 5, 10, 20):
        wait_done(stage, milestone)
        for kind in ("normal", "pubsub"):
            admin.client_kill_filter(_type=kind, skipme=True)
    all_once(stage, sent, worker)


@pytest.mark.parametrize("pool", EACH)
def test_the_server_restarts(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), load(stage, 20, 0.3)
    for milestone in (1, 8):
        wait_done(stage, milestone)
        stage.server.restart()
    all_once(stage, sent, worker)


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_the_server_is_away_for_a_while(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), load(stage, 10, 0.3)
    wait_done(stage, 1)
    stage.server.stop()
    worker.wait_for_text(
        "rying again"
    )  # for the connection, or (solo) for the result of the body that is done
    stage.server.start()
    all_once(stage, sent, worker)


@pytest.mark.parametrize("pool", EACH)
def test_full_memory_stops_claims_and_no_worker(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), load(stage, 12, 0.3)
    wait_done(stage, 1)
    admin = stage.server.client()
    admin.config_set("maxmemory", 1)
    worker.wait_for_text("the store refuses claims")
    stage.wait(lambda: stage.counts().running == 0, "outcomes that full memory lets through")
    assert stage.counts().waiting > 0
    admin.config_set("maxmemory", 0)
    all_once(stage, sent, worker)


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_server_that_is_read_only_for_a_while(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker, sent = stage.worker(pool), [*load(stage, 1, 2.0), *load(stage, 12, 0.2)]
    stage.wait_begun(sent[0].job)  # long enough to end, whatever the machine does, on a read-only server
    admin = stage.server.client()
    admin.replicaof("127.0.0.1", "1")
    worker.wait_for_text("cannot be stored yet")  # the body is done, and must not run again for that
    admin.replicaof("NO", "ONE")
    all_once(stage, sent, worker)


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_an_idle_worker_of_a_server_that_is_read_only_for_a_while(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    worker = stage.worker(pool)
    admin = stage.server.client()
    admin.replicaof("127.0.0.1", "1")
    worker.wait_for_text("the store refuses claims")
    admin.replicaof("NO", "ONE")
    all_once(stage, load(stage, 4, 0), worker)


def test_a_worker_that_starts_before_its_server(make_stage: MakeStage) -> None:
    stage = make_stage()
    sent = load(stage, 3, 0)
    stage.server.stop()
    worker = stage.start_worker("prefork")
    worker.wait_for_text("Trying again")
    stage.server.start()
    all_once(stage, sent, worker)


@pytest.mark.slow
def test_a_job_whose_report_was_lost_with_its_worker_does_not_run_again(make_stage: MakeStage) -> None:
    """Its result was stored: the next attempt finds it, goes on with the chain, and leaves the body alone."""
    stage = make_stage(worker='lease = "3s"\nheartbeat = "0.5s"')
    first = stage.worker("prefork", concurrency=1)
    job, after = "once", "after"
    result = chain(
        stage.s("nap", job, 1.0), stage.s("mark", after, immutable=True), app=stage.app
    ).apply_async()
    stage.wait_begun(job)
    first.freeze()  # the child goes on, ends, and stores its result; nobody reads that from its pipe
    stage.wait(lambda: result.parent.state == "SUCCESS", "the result of the first step")
    first.kill9()
    second = stage.worker("prefork", concurrency=1)
    stage.wait(lambda: result.state == "SUCCESS", "the second step", 30)
    stage.wait_idle()
    assert (stage.begun(job), stage.begun(after)) == (1, 1)
    assert second.alive
    assert stage.counts().depth == 0
