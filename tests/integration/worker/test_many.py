"""Ten thousand jobs through code that knows only Celery, with `install()` as the only change: each runs once."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.integration.worker.stage import POOLS, MakeStage


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ten_thousand_jobs_run_once(make_stage: MakeStage) -> None:
    stage = make_stage()
    for _ in range(2):
        stage.worker("prefork", prefetch=4)
    jobs = [f"many-{n}" for n in range(10_000)]
    results = [stage.app.send_task(stage.task("mark"), (job, n)) for n, job in enumerate(jobs)]
    stage.wait(lambda: stage.book.count("end") >= len(jobs), "all of them", 400)
    stage.wait_idle()
    begun = Counter(entry.job for entry in stage.book.entries() if entry.kind == "begin")
    assert begun == dict.fromkeys(jobs, 1)
    assert [result.get(timeout=10) for result in results[::100]] == list(range(0, 10_000, 100))
    assert stage.counts().depth == 0


@pytest.mark.slow
@pytest.mark.parametrize("pool", POOLS)
def test_a_few_hundred_on_each_pool_with_several_leases_each(make_stage: MakeStage, pool: str) -> None:
    stage = make_stage()
    stage.worker(pool, prefetch=4)
    jobs = [f"some-{n}" for n in range(300)]
    for job in jobs:
        stage.app.send_task(stage.task("mark"), (job,))
    stage.wait(lambda: stage.book.count("end") >= len(jobs), "all of them", 60)
    stage.wait_idle()
    begun = Counter(entry.job for entry in stage.book.entries() if entry.kind == "begin")
    assert begun == dict.fromkeys(jobs, 1)


@pytest.mark.slow
def test_children_that_are_replaced_lose_nothing(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.worker("prefork", "--max-tasks-per-child", "7", prefetch=3)
    jobs = [f"short-{n}" for n in range(300)]
    for job in jobs:
        stage.app.send_task(stage.task("mark"), (job,))
    stage.wait(lambda: stage.book.count("end") >= len(jobs), "all of them", 90)
    stage.wait_idle()
    begun = Counter(entry.job for entry in stage.book.entries() if entry.kind == "begin")
    assert begun == dict.fromkeys(jobs, 1)
    assert len({entry.process for entry in stage.book.entries() if entry.kind == "begin"}) > 30
