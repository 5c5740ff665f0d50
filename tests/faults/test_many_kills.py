"""Ten thousand jobs while workers are killed: what was accepted has succeeded or is a dead letter, by both accounts."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.harness.verifier import Verifier
from tests.integration.beat.test_retries import beat
from tests.integration.worker.conftest import make_stage
from tests.integration.worker.stage import MakeStage, Stage

from tidegate.domain.states import State

__all__ = ["make_stage"]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

JOBS, DOOMED, KILLS = 10_000, 100, 20
SEED = 20260308


def doomed_after_one_retry() -> str:
    return (
        f'[tasks."{Stage.task("doomed")}".retry]\n'
        'kind = "fixed"\ninterval = "100ms"\njitter = "none"\nmax_retries = 1'
    )


def test_ten_thousand_jobs_with_twenty_killed_workers(make_stage: MakeStage) -> None:
    stage = make_stage(more=doomed_after_one_retry(), worker='lease = "3s"\nheartbeat = "0.5s"')
    beat(stage)
    workers = [stage.worker("prefork", prefetch=4) for _ in range(2)]
    sent: set[str] = set()
    doomed: set[str] = set()
    chance = random.Random(SEED)
    for _ in range(KILLS):
        before = stage.counts().depth
        sent |= {stage.run("nap", 0.005).job for _ in range((JOBS - DOOMED) // KILLS)}
        doomed |= {stage.run("doomed").job for _ in range(DOOMED // KILLS)}
        left = before + chance.randrange(20, 200)
        stage.wait(lambda left=left: stage.counts().depth <= left, f"{left} unfinished jobs", 120)
        victim = workers.pop(chance.randrange(len(workers)))
        victim.kill9()
        workers.append(stage.worker("prefork", prefetch=4))
    stage.wait(lambda: stage.counts().depth == 0, "everything to be finished", 300)

    entries = stage.book.entries()
    job_of = {entry.attempt: entry.job for entry in entries if entry.kind == "begin"}
    ended = Counter(job_of[entry.attempt] for entry in entries if entry.kind == "end")
    states = Counter(stage.state(job) for job in sent | doomed)
    total, _ = stage.store.dead_letters(1)
    print(f"seed {SEED}: {KILLS} kills, {len(job_of)} attempts of {JOBS} jobs, {total} dead letters")
    assert set(ended) == sent, "by the ledger: all that could succeed did, and nothing else"
    assert states == {State.SUCCEEDED: JOBS - DOOMED, State.DEAD: DOOMED}, "by the store"
    assert total == DOOMED
    # a body that raises tells no end, and would seem to live on
    assert Verifier(e for e in entries if e.job not in doomed).overlaps(possible=True) == []
    assert len(job_of) > JOBS + DOOMED, "kills this many cost attempts: else nothing was tested"
