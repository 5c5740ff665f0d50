"""`enqueue_many`: each job its own answer, and the same message that Celery makes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from celery.signals import before_task_publish
from tests.integration.producer import work
from tests.integration.producer.conftest import MakeShop
from tests.integration.producer.shop import Shop

from tidegate import (
    Call,
    InvalidJob,
    QueueFull,
    Receipt,
    call,
    context,
    enqueue,
    enqueue_many,
)
from tidegate.domain.states import State

#: what differs between two sends of the same call
OWN = {"id", "root_id", "operation_id", "correlation_id", "delivery_tag", "step", "deadline"}


def plain(value: Any) -> Any:
    """A message without what is its own."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if name not in OWN}
    return [plain(item) for item in value] if isinstance(value, list) else value


CALLS: list[tuple[Call[Any], dict[str, Any]]] = [
    (Call("t"), {}),
    (Call("t", (1, "ü", None), {"a": {"b": [1.5, True]}}), {"tenant": "acme", "priority": "high"}),
    (Call("t", ('it\'s "odd"\n', "x" * 3000), {"deep": [[[[1]]]]}), {"queue": "small"}),
    (Call("t", (1,)), {"priority": 3, "queue_timeout": "1m", "deadline": "2h", "cost": {"tokens": 3}}),
    (Call("t", (1,)), {"resources": ["key:c"]}),
    (call(work.typed, 1, y="b"), {}),
    (call(work.decorated), {}),
    (call(work.celerys), {}),
    (call(work.silent), {"tenant": "acme"}),
]


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a context"])
@pytest.mark.parametrize(("one", "options"), CALLS)
def test_the_message_is_the_one_that_celery_makes(
    shop: Shop, one: Call[Any], options: dict[str, Any], inside: bool
) -> None:
    with context(**({"operation_id": "op", "tenant": "around"} if inside else {})):
        single = enqueue(one.using(**options))
        (bulk,) = enqueue_many([one], **options)
    assert isinstance(bulk, Receipt)
    views = [shop.store.job(found.operation_id, found.step) for found in (single, bulk)]
    messages = [shop.envelope(found.operation_id, found.step) for found in (single, bulk)]
    assert plain(messages[0]) == plain(messages[1])
    assert list(messages[0]["headers"]) == list(messages[1]["headers"])
    for found, view, message in zip((single, bulk), views, messages, strict=True):
        assert view is not None
        headers = message["headers"]
        assert headers["id"] == headers["root_id"] == message["properties"]["correlation_id"] == found.task_id
        assert (view.operation_id, view.step, view.task_id) == (found.operation_id, found.step, found.task_id)
        assert found.step == (found.task_id if inside else "")
    facts = [(view.queue, view.tenant, view.task, view.state, view.charged) for view in views if view]
    assert facts[0] == facts[1]
    assert abs(views[0].deadline_ms - views[1].deadline_ms) < 5_000  # type: ignore[union-attr]


def test_each_job_gets_its_own_answer_in_order(shop: Shop) -> None:
    calls = [
        call("t", 1),
        call("t", object()),
        *[call("t", n).using(queue="small") for n in range(4)],
        call("t").using(queue="nowhere"),
        call("t", 1).using(idempotency_key="k"),
        call("t", 1).using(idempotency_key="k"),
        call("t", 2).using(idempotency_key="k"),
        call("t").using(operation_id="op"),
        call("t").using(operation_id="op"),
        call("t", "x" * 2**20),
        call(work.typed),
        call("t", 2),
    ]
    found = enqueue_many(calls, tenant="acme")
    assert [type(one).__name__ for one in found] == [
        "Receipt", "NotJson", "Receipt", "Receipt", "Receipt", "QueueFull", "UnknownQueue", "Receipt", "Receipt",
        "IdempotencyConflict", "Receipt", "Receipt", "TooLarge", "InvalidJob", "Receipt",
    ]  # fmt: skip
    receipts = [one for one in found if isinstance(one, Receipt)]
    assert [one.status for one in receipts].count("duplicate") == 2
    assert all(one.state() in (State.WAITING, State.DELAYED) for one in receipts)
    keyed = [one for one in receipts if one.operation_id == receipts[4].operation_id]
    assert len(keyed) == 2
    assert len({one.task_id for one in keyed}) == 1
    assert shop.counts().depth + shop.counts("small").depth == len(receipts) - 2


def test_bulk_and_single_sends_know_each_others_keys(shop: Shop) -> None:
    first = enqueue("t", args=(1,), idempotency_key=["a", 1], tenant="acme")
    (again,) = enqueue_many([call("t", 1)], idempotency_key=["a", 1], tenant="acme")
    assert isinstance(again, Receipt)
    assert (again.status, again.task_id, again.operation_id) == (
        "duplicate",
        first.task_id,
        first.operation_id,
    )


def test_many_chunks(make_shop: MakeShop) -> None:
    shop = make_shop("[queues.default]\nmax_depth = 2000\n")
    found = enqueue_many(call("t", number) for number in range(2100))
    assert [isinstance(one, Receipt) for one in found] == [True] * 2000 + [False] * 100
    assert isinstance(found[-1], QueueFull)
    operations = {one.operation_id for one in found if isinstance(one, Receipt)}
    assert len(operations) == 2000
    assert shop.counts().depth == 2000


def test_times(shop: Shop) -> None:
    eta = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    found = enqueue_many([call("t").using(delay="1h"), call("t").using(eta=eta), call("t")])
    assert [one.state() for one in found if isinstance(one, Receipt)] == [
        State.DELAYED,
        State.DELAYED,
        State.WAITING,
    ]


def test_wrong_common_options_are_an_error_of_the_call(shop: Shop) -> None:
    with pytest.raises(InvalidJob, match="tenent: no such option"):
        enqueue_many([call("t")], tenent="acme")  # type: ignore[call-arg]


def test_nothing_is_nothing(shop: Shop) -> None:
    assert enqueue_many([]) == []


def test_receivers_of_celerys_signals_see_each_message(shop: Shop) -> None:
    seen: list[Any] = []

    def receiver(body: Any = None, headers: Any = None, **_: Any) -> None:
        seen.append(body[0])
        headers["trace"] = f"trace-{len(seen)}"

    before_task_publish.connect(receiver)
    try:
        found = enqueue_many([call("t", number) for number in range(3)])
    finally:
        before_task_publish.disconnect(receiver)
    assert seen == [(0,), (1,), (2,)]
    traces = [
        shop.envelope(one.operation_id)["headers"]["trace"] for one in found if isinstance(one, Receipt)
    ]
    assert traces == ["trace-1", "trace-2", "trace-3"]


def test_routers_that_are_functions_see_each_call(shop: Shop) -> None:
    def route(name: str, args: Any, kwargs: Any, options: Any, task: Any = None, **_: Any) -> Any:
        return {"queue": "small"} if args == (1,) else None

    shop.app.conf.task_routes = (route,)
    found = enqueue_many([call("t", 0), call("t", 1)])
    assert [one.queue for one in found if isinstance(one, Receipt)] == ["default", "small"]
