"""From a producer through a real worker and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from celery import chain, chord, group
from tests.harness.processes import Processes, celery_worker
from tests.harness.server import Server
from tests.harness.wait import wait_until
from tests.integration.producer import work
from tests.integration.producer.shop import Shop

import tidegate
from tidegate import JobEnded, NoResult, NotFinished, call, context, enqueue
from tidegate.domain.states import State

SETTINGS = """
[worker]
queues = ["default", "small"]
[queues.small]
[queues.nobody]
max_depth = 5
[queues.never]
max_depth = 5
[queues.later]
"""
WAIT = 20.0


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, shared_server: Server) -> Iterator[Shop]:
    """One fleet of this file with one worker of four slots."""
    directory = tmp_path_factory.mktemp("busy")
    shop = Shop.open(directory, shared_server, f"r{directory.stat().st_ino}", SETTINGS)
    processes = Processes(directory)
    argv = celery_worker(
        "tests.integration.producer.app", "-P", "threads", "-c", "4", "-l", "INFO", "--without-gossip",
        "--without-mingle", "--without-heartbeat", "-Q", "default,small",
    )  # fmt: skip
    processes.spawn_worker(argv, env=shop.env)
    yield shop
    processes.close()
    shop.close()


@pytest.fixture(autouse=True)
def _shop(busy: Shop) -> None:
    """Every test uses it."""


def got(result: Any) -> Any:
    """The result of a Celery handle, by looking: a subscription would outlive the server of these tests."""
    wait_until(result.ready, lambda: f"the result of {result.id}", timeout=WAIT)
    return result.get()


PAYLOADS: list[Any] = [
    {"__type__": "datetime", "__value__": "x"},
    {"__type__": "bytes", "__value__": {"__type__": "uuid", "__value__": {"hex": "0" * 32}}},
    ["ü", "😀", "\x00", "\u2028", "", " "],
    {"": None, " ": {"nested": [[[[{}]]]]}},
    [0, -0.0, 1.5, 1e300, 2**70, -(2**63), True, None],
    "x" * 100_000,
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_a_payload_arrives_and_comes_back_unchanged(payload: Any) -> None:
    receipt = enqueue(call(work.echo, payload))
    found = receipt.result(timeout=WAIT)
    assert found == payload
    assert repr(found) == repr(payload)
    wait_until(
        lambda: receipt.state() is State.SUCCEEDED, "the outcome to be settled"
    )  # a moment after the result


def test_a_task_knows_its_own_job() -> None:
    deadline = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(seconds=60)
    receipt = enqueue(work.seen, tenant="acme", deadline=deadline)
    found = receipt.result(timeout=WAIT)
    assert found["operation_id"] == receipt.operation_id
    assert (found["task_id"], found["tenant"], found["step"], found["attempt"]) == (
        receipt.task_id,
        "acme",
        "",
        1,
    )
    assert found["fence"] > 0
    assert found["deadline"] == deadline.isoformat()
    assert 0 < found["remaining"] <= 60


def test_outside_of_a_task_there_is_no_current_job() -> None:
    with pytest.raises(LookupError, match="outside of a task"):
        tidegate.current_job()


def test_a_job_without_a_deadline_ends_at_its_attempt_timeout() -> None:
    found = enqueue(work.seen).result(timeout=WAIT)
    assert found["deadline"] is None
    assert 500 < found["remaining"] <= 600


@pytest.mark.parametrize("how", ["enqueue", "apply_async"])
def test_what_a_task_sends_inherits_tenant_and_operation_but_is_a_job_of_its_own(
    busy: Shop, how: str
) -> None:
    outer = enqueue(call(work.publish, how), tenant="acme", idempotency_key=f"outer-{how}")
    inner = outer.result(timeout=WAIT)
    found = got(busy.app.AsyncResult(inner["task_id"]))
    assert (found["tenant"], found["operation_id"]) == ("acme", outer.operation_id)
    assert found["step"] == inner["task_id"]


def test_what_a_task_says_wins_over_what_it_inherits(busy: Shop) -> None:
    outer = enqueue(
        work.publish, args=("enqueue",), kwargs={"tenant": "other", "operation_id": "own"}, tenant="acme"
    )
    inner = outer.result(timeout=WAIT)
    found = got(busy.app.AsyncResult(inner["task_id"]))
    assert (found["tenant"], found["operation_id"], found["step"]) == ("other", "own", "")


def test_every_step_of_a_canvas_knows_tenant_operation_and_deadline(busy: Shop) -> None:
    seen = busy.app.tasks[work.seen.name]
    deadline = dt.datetime.now(dt.UTC).replace(microsecond=0) + dt.timedelta(minutes=5)
    with context(tenant="acme", deadline=deadline):
        canvas = chain(
            seen.s(),
            group(seen.s(), chain(seen.s(), seen.s())),
            busy.app.tasks[work.echo.name].s(),
            app=busy.app,
        )
        result = canvas.apply_async()
    pair = got(result)
    first = got(result.parent.parent)
    facts = {(one["tenant"], one["operation_id"], one["deadline"]) for one in (first, *pair)}
    assert facts == {("acme", first["operation_id"], deadline.isoformat())}
    assert len({one["step"] for one in (first, *pair)}) == 3


def test_replace_stays_in_the_operation(busy: Shop) -> None:
    receipt = enqueue(work.swap, tenant="acme")
    found = receipt.result(timeout=WAIT)
    assert (found["tenant"], found["operation_id"]) == ("acme", receipt.operation_id)
    assert found["step"] == f"{receipt.task_id}:1"


def test_callbacks_and_chords_outside_of_a_context_are_one_operation(busy: Shop) -> None:
    seen = busy.app.tasks[work.seen.name]
    body = chord([seen.s(), seen.s()], busy.app.tasks[work.echo.name].s(), app=busy.app).apply_async()
    pair = got(body)
    assert len({one["operation_id"] for one in pair}) == 1
    assert {one["tenant"] for one in pair} == {"default"}


def test_an_ordinary_publish_of_a_task_is_refused_when_the_queue_is_full(busy: Shop) -> None:
    """A crawler cannot grow without bound: nobody consumes this queue."""
    found = enqueue(call(work.flood, "nobody", 9)).result(timeout=WAIT)
    assert found == {"sent": 5, "full": 4}


def test_the_next_step_of_a_chain_is_never_refused(busy: Shop) -> None:
    echo = busy.app.tasks[work.echo.name]
    assert enqueue(call(work.flood, "never", 9)).result(timeout=WAIT)["full"] == 4
    result = chain(echo.s(1), echo.s().set(queue="never"), app=busy.app).apply_async()
    assert got(result.parent) == 1
    wait_until(
        lambda: busy.counts("never").depth == 6, lambda: f"one above the bound: {busy.counts('never')}"
    )


def test_waiting_for_a_result() -> None:
    with pytest.raises(NotFinished) as raised:
        enqueue("t", queue="later").result(timeout=0.2)
    assert isinstance(raised.value, TimeoutError)
    assert raised.value.state == "waiting"
    with pytest.raises(NoResult, match="ignores its result"):
        enqueue(work.silent).result(timeout=WAIT)


def test_a_dead_job_is_not_waited_for() -> None:
    """It would be waited for until the time-out; there is none here."""
    receipt = enqueue("t", queue_timeout=0.001, queue="default", delay=0.05, deadline=0.1)
    with pytest.raises((JobEnded, NotFinished)) as raised:
        receipt.result(timeout=WAIT)
    assert isinstance(raised.value, JobEnded)
    assert raised.value.state == "dead"


def test_a_duplicate_gets_the_result_of_the_first() -> None:
    first = enqueue(call(work.echo, "once"), idempotency_key="dup")
    assert first.result(timeout=WAIT) == "once"
    again = enqueue(call(work.echo, "once"), idempotency_key="dup")
    assert (again.status, again.result(timeout=WAIT)) == ("duplicate", "once")


def test_a_failing_task_is_not_a_result_yet() -> None:
    """Until somebody decides about it (the authority comes in a later release) it has none."""
    receipt = enqueue(work.boom)
    wait_until(lambda: receipt.state() is State.FAILED, "the failure to be recorded", timeout=WAIT)
    with pytest.raises(NotFinished) as raised:
        receipt.result(timeout=0.2)
    assert raised.value.state == "failed"
