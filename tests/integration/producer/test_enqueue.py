"""`enqueue` and plain Celery calls against a real store: receipts, refusals, and that a refusal leaves nothing."""

from __future__ import annotations

import datetime as dt
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery, chain, group
from tests.integration.producer import work
from tests.integration.producer.conftest import MakeShop
from tests.integration.producer.shop import Shop

from tidegate import (
    IdempotencyConflict,
    InvalidJob,
    NoResult,
    QueueFull,
    TooLarge,
    UnknownQueue,
    call,
    context,
    enqueue,
)
from tidegate.domain.states import State

DAY = {"day": "2026-03-08"}


def test_a_receipt_says_what_the_store_did(shop: Shop) -> None:
    first = enqueue("reports.fetch", kwargs=DAY, tenant="acme", priority="high", queue_timeout=600)
    assert (first.status, first.pressure, first.position, first.queue) == ("accepted", "green", 1, "default")
    assert enqueue("reports.fetch", kwargs=DAY).position == 2
    assert first.state() is State.WAITING
    view = shop.store.job(first.operation_id)
    assert view is not None
    assert (view.tenant, view.task, view.task_id, view.step) == ("acme", "reports.fetch", first.task_id, "")


def test_pressure_rises_with_the_depth(make_shop: MakeShop) -> None:
    make_shop("[queues.default]\nmax_depth = 10\n")
    found = [enqueue("t").pressure for _ in range(10)]
    assert (found[0], found[7], found[-1]) == ("green", "yellow", "red")


def test_the_same_key_is_the_same_job(shop: Shop) -> None:
    key: Any = ["fetch", "2026-03-08"]
    first = enqueue("reports.fetch", kwargs=DAY, tenant="acme", idempotency_key=key)
    again = enqueue("reports.fetch", kwargs=DAY, tenant="acme", idempotency_key=key)
    assert again.status == "duplicate"
    assert (again.operation_id, again.task_id) == (first.operation_id, first.task_id)
    assert again.state() is State.WAITING
    assert enqueue("reports.fetch", kwargs=DAY, tenant="other", idempotency_key=key).status == "accepted"
    assert enqueue("reports.other", kwargs=DAY, tenant="acme", idempotency_key=key).status == "accepted"
    assert shop.counts().depth == 3


def test_the_same_key_with_other_arguments_is_a_conflict(shop: Shop) -> None:
    first = enqueue("t", args=[1], idempotency_key="k")
    with pytest.raises(IdempotencyConflict) as raised:
        enqueue("t", args=[2], idempotency_key="k")
    assert (raised.value.key, raised.value.operation_id) == ("k", first.operation_id)
    assert shop.counts().depth == 1


def test_keys_of_plain_celery_calls_resolve_too(shop: Shop) -> None:
    """The second AsyncResult must name the task that runs, or it stays pending for ever."""
    ids = {
        shop.app.send_task("t", headers={"idempotency_key": "k", "tenant": "acme"}).id,
        shop.app.send_task("t", headers={"idempotency_key": "k"}, tenant="acme").id,
        enqueue("t", idempotency_key="k", tenant="acme").task_id,
    }
    with context(tenant="acme"):
        ids.add(shop.app.send_task("t", idempotency_key="k").id)
    assert len(ids) == 1
    assert shop.counts().depth == 1


def test_the_same_operation_is_the_same_job(shop: Shop) -> None:
    first = enqueue("t", operation_id="order-7")
    again = enqueue("t", operation_id="order-7")
    assert (again.status, again.operation_id, again.task_id) == ("duplicate", "order-7", first.task_id)
    assert shop.counts().depth == 1


def test_jobs_of_one_context_are_steps_of_one_operation(shop: Shop) -> None:
    with context(operation_id="order-7", tenant="acme"):
        first, second = enqueue("t"), enqueue("t")
    assert first.operation_id == second.operation_id == "order-7"
    assert first.step != second.step
    assert first.state() is second.state() is State.WAITING


WAYS: dict[str, Callable[[Celery], Any]] = {
    "enqueue": lambda app: enqueue("t", queue="small"),
    "enqueue delay": lambda app: enqueue("t", queue="small", delay="1h"),
    "send_task": lambda app: app.send_task("t", queue="small"),
    "apply_async": lambda app: app.tasks["own"].apply_async(queue="small"),
    "countdown": lambda app: app.tasks["own"].apply_async(queue="small", countdown=3600),
    "eta": lambda app: app.tasks["own"].apply_async(
        queue="small", eta=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    ),
    "signature": lambda app: app.signature("t", queue="small").delay(),
    "chain": lambda app: chain(app.signature("t", queue="small"), app.signature("t"), app=app).delay(),
    "group": lambda app: group(app.signature("t", queue="small"), app=app).delay(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_full_queue_refuses_every_way_of_sending_unchanged_and_at_once(shop: Shop, way: str) -> None:
    shop.app.task(lambda_body, name="own", shared=False)
    for _ in range(3):
        WAYS[way](shop.app)
    for _ in range(3):
        start = time.monotonic()
        with pytest.raises(QueueFull) as raised:
            WAYS[way](shop.app)
        assert type(raised.value) is QueueFull
        assert raised.value.__cause__ is None
        assert (raised.value.scope, raised.value.depth, raised.value.limit) == ("queue:small", 3, 3)
        assert raised.value.retry_after > 0
        assert time.monotonic() - start < 1.0
    assert shop.counts("small").depth == 3


def lambda_body() -> None:
    """A task of the app's own."""


def test_a_tenants_bound_is_its_own(make_shop: MakeShop) -> None:
    make_shop("[tenants.little]\nmax_depth = 1\n")
    enqueue("t", tenant="little")
    with pytest.raises(QueueFull) as raised:
        enqueue("t", tenant="little")
    assert raised.value.scope == "tenant:little"
    enqueue("t", tenant="other")


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"kwargs": {"at": dt.datetime(2026, 3, 8)}}, InvalidJob, "kwargs.at: a value of type datetime.datetime"),
    ({"args": [{1}]}, InvalidJob, "args[0]: a value of type set"),
    ({"kwargs": {"x": "y" * 2**20}}, TooLarge, "(fleet.max_body)"),
    ({"queue": "smal"}, UnknownQueue, "did you mean 'small'?"),
    ({"tenant": ""}, InvalidJob, "tenant: empty"),
    ({"tenant": "x" * 300}, InvalidJob, "tenant: 300 bytes"),
    ({"delay": "1h", "eta": dt.datetime.now(dt.UTC)}, InvalidJob, "eta: given beside delay"),
    ({"delay": -1}, InvalidJob, "delay: -1"),
    ({"eta": dt.datetime(2026, 3, 8)}, InvalidJob, "a datetime with a zone"),
    ({"deadline": "tomorrow"}, InvalidJob, "deadline: 'tomorrow'"),
    ({"priority": "urgentest"}, InvalidJob, "one of low, normal, high, urgent"),
    ({"args": "abc"}, InvalidJob, "args: of type str"),
    ({"kwargs": [1]}, InvalidJob, "kwargs: of type list"),
    ({"tenent": "acme"}, InvalidJob, "tenent: no such option; expected 'tenant'"),
    ({"idempotency_key": 7}, InvalidJob, "idempotency_key: of type int"),
]


@pytest.mark.parametrize(("wrong", "kind", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_is_wrong_with_a_job_is_said_before_anything_is_sent(
    shop: Shop, wrong: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        enqueue("t", **wrong)
    assert text in str(raised.value)
    assert shop.counts().depth == shop.counts("small").depth == 0


def test_plain_celery_calls_are_told_the_same(shop: Shop) -> None:
    with pytest.raises(InvalidJob, match=r"^kwargs\.at: "):
        shop.app.send_task("t", kwargs={"at": dt.datetime(2026, 3, 8)})
    with pytest.raises(InvalidJob, match=r"^tenant: empty"):
        shop.app.send_task("t", headers={"tenant": ""})
    with pytest.raises(UnknownQueue):
        shop.app.send_task("t", queue="smal")
    with pytest.raises(TooLarge):
        shop.app.send_task("t", args=["x" * 2**20])
    assert shop.counts().depth == 0


def test_arguments_are_compared_with_the_signature_of_a_task_object(shop: Shop) -> None:
    with pytest.raises(InvalidJob, match="missing 1 required positional argument: 'x'"):
        enqueue(work.typed)
    with pytest.raises(InvalidJob, match="unexpected keyword argument 'z'"):
        enqueue(call(work.typed, 1, z=2))
    assert shop.counts().depth == 0
    assert enqueue(call(work.typed, 1, y="b"), tenant="acme").status == "accepted"
    assert enqueue(work.typed, args=(1,), kwargs={"y": "b"}).status == "accepted"


def test_delay_and_eta_are_the_stores_business(shop: Shop) -> None:
    receipts = [
        enqueue("t", delay=3600),
        enqueue("t", eta=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)),
    ]
    assert [one.state() for one in receipts] == [State.DELAYED, State.DELAYED]
    assert enqueue("t", eta=dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)).state() is State.WAITING
    for one in receipts:
        view = shop.store.job(one.operation_id)
        assert view is not None
        assert abs(view.eligible_ms - view.created_ms - 3_600_000) < 5_000
        assert shop.envelope(one.operation_id)["headers"]["eta"] is None


def test_options_of_the_decorator_and_of_the_file(make_shop: MakeShop) -> None:
    shop = make_shop(f'[queues.small]\n[tasks."{work.decorated.name}"]\neffect = "none"\n')
    receipt = enqueue(work.decorated)
    view = shop.store.job(receipt.operation_id)
    assert view is not None
    assert (receipt.queue, view.queue) == ("small", "small")
    assert enqueue(work.decorated, queue="default").queue == "default"


def test_the_queue_of_a_task_in_the_file(make_shop: MakeShop) -> None:
    shop = make_shop('[queues.reports]\n[tasks."reports.fetch"]\nqueue = "reports"\n')
    assert enqueue("reports.fetch").queue == "reports"
    shop.app.send_task("reports.fetch")
    assert shop.counts("reports").depth == 2


def test_the_body_is_stored_as_text(shop: Shop) -> None:
    found = shop.envelope(enqueue("t", kwargs={"wort": "Größe 😀"}).operation_id)
    assert found["body"] == (
        '[[],{"wort":"Größe 😀"},{"callbacks":null,"errbacks":null,"chain":null,"chord":null}]'
    )
    assert found["properties"]["body_encoding"] is None


def test_an_eager_app_runs_the_task_here(shop: Shop) -> None:
    """Test suites of users switch it on; nothing is sent then."""
    shop.app.conf.task_always_eager = True
    receipt = enqueue(call(work.typed, 1, y="b"))
    assert (receipt.status, receipt.result(timeout=1), receipt.state()) == ("accepted", "1b", State.SUCCEEDED)
    assert enqueue(work.boom).state() is State.FAILED
    assert shop.counts().depth == 0


def test_a_receipt_can_be_pickled(shop: Shop) -> None:
    receipt = enqueue("t")
    copy = pickle.loads(pickle.dumps(receipt))
    assert copy == receipt
    with pytest.raises(NoResult, match="another process"):
        copy.state()
