"""Celery's canvas, results and callbacks on every pool, through code that knows only Celery."""

from __future__ import annotations

import uuid

import pytest
from celery import chain, chord, group
from tests.integration.worker.stage import Stage

VALUE = {
    "__type__": "datetime",
    "__value__": "x",
    "none": None,
    "text": "ключ \u2028 \x00",
    "deep": [[[1.5, -0.0, 1e300]], {"": True}],
}


def test_a_result(each_pool: Stage) -> None:
    result = each_pool.send("add", 2, 3).result
    assert result.get(timeout=20) == 5
    assert (result.state, result.successful()) == ("SUCCESS", True)


@pytest.mark.parametrize("value", [VALUE, [], None, "x", 2**70], ids=["pairs", "list", "null", "text", "big"])
def test_a_value_arrives_unchanged_and_comes_back_unchanged(each_pool: Stage, value: object) -> None:
    assert each_pool.send("echo", value).result.get(timeout=20) == value


def test_chain(each_pool: Stage) -> None:
    s = each_pool.s
    result = chain(s("add", 1, 2), s("add", 10), s("add", 100), app=each_pool.app).apply_async()
    assert result.get(timeout=20) == 113
    assert result.parent.get(timeout=5) == 13
    assert result.parent.parent.get(timeout=5) == 3


def test_group(each_pool: Stage) -> None:
    result = group([each_pool.s("add", n, n) for n in range(6)], app=each_pool.app).apply_async()
    assert result.get(timeout=20) == [0, 2, 4, 6, 8, 10]


def test_chord(each_pool: Stage) -> None:
    header = [each_pool.s("add", n, n) for n in range(5)]
    assert chord(header, app=each_pool.app)(each_pool.s("total")).get(timeout=20) == 20


def test_chord_of_chains_in_a_chain(each_pool: Stage) -> None:
    s, app = each_pool.s, each_pool.app
    header = [chain(s("add", 1), s("add", 1), app=app) for _ in range(3)]
    whole = chain(s("add", 0, 0), chord(header, s("total"), app=app), s("add", 1000), app=app)
    assert whole.apply_async().get(timeout=30) == 1006


def test_link(each_pool: Stage) -> None:
    job = f"link-{uuid.uuid4().hex[:8]}"
    result = each_pool.send("add", 4, 4, link=each_pool.s("heard", job)).result
    assert result.get(timeout=20) == 8
    each_pool.wait(
        lambda: [n["value"] for n in each_pool.notes("heard") if n["job"] == job] == [8], "the callback"
    )


def test_replace(each_pool: Stage) -> None:
    sent = each_pool.send("swap", 1)
    assert sent.result.get(timeout=20) == 102
    each_pool.wait_idle()


def test_countdown_waits_in_the_store_and_not_in_the_worker(each_pool: Stage) -> None:
    sent = each_pool.run("mark", countdown=3)
    assert each_pool.counts().delayed == 1
    inspect = each_pool.app.control.inspect(timeout=3, limit=1)
    assert [len(jobs) for jobs in (inspect.scheduled() or {}).values()] == [0]
    assert [len(jobs) for jobs in (inspect.reserved() or {}).values()] == [0]
    assert sent.result.get(timeout=20) == 0
    assert each_pool.begun(sent.job) == 1


def test_a_failed_attempt_is_no_failure_of_the_canvas(each_pool: Stage) -> None:
    """Whether it is terminal is the authority's to say: no errback, no next step, no chord body before that."""
    s, app, job = each_pool.s, each_pool.app, f"never-{uuid.uuid4().hex[:8]}"
    boom = each_pool.s("end", job, "boom")
    after = [
        chain(boom, s("heard", job), app=app).apply_async(link_error=s("heard", job)),
        chord([boom, s("add", 1, 1)], app=app)(s("heard", job)),
    ]
    each_pool.wait(lambda: each_pool.begun(job) == 2, "both attempts")
    each_pool.wait_idle()
    each_pool.wait(lambda: after[0].parent.state == "RETRY", "a result that may change")
    assert [result.state for result in after] == ["PENDING", "PENDING"]
    assert [note for note in each_pool.notes("heard") if note["job"] == job] == []
