"""install(): whatever the order, whatever the app said before; and nothing connects."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, Task, shared_task
from celery.exceptions import ImproperlyConfigured, Retry
from celery.worker.request import Request

from tidegate.config import Settings, load
from tidegate.domain.errors import UnknownQueue
from tidegate.transport import Transport
from tidegate.transport.binding import binding
from tidegate.worker.backend import StoreBackend
from tidegate.worker.consumer import FleetConsumer
from tidegate.worker.install import PoolCheck, fleet_of, install
from tidegate.worker.request import FleetRequest
from tidegate.worker.task import RetryWithChanges

#: nothing listens there: whoever connects fails
NOWHERE = 'url = "redis://127.0.0.1:1"'


def settings(path: Path, broker: str = NOWHERE, more: str = "") -> Settings:
    file = path / "tidegate.toml"
    file.write_text(f'[fleet]\nname = "unit"\n[broker]\n{broker}\n[queues.reports]\n{more}')
    return load(file, {})


@pytest.fixture
def stock() -> Iterator[Celery]:
    app = Celery("app", set_as_current=False)
    yield app
    app.close()


def check(app: Celery) -> None:
    conf = app.conf
    assert conf.broker_transport == "tidegate.transport:Transport"
    assert conf.task_acks_late is True
    assert conf.worker_consumer == "tidegate.worker.consumer:FleetConsumer"
    assert conf.task_serializer == "tidegate-json"
    assert conf.broker_transport_options["global_keyprefix"] == "{unit}:k:"
    assert conf.result_backend_transport_options["global_keyprefix"] == "{unit}:r:"
    assert set(app.amqp.queues) == {"default", "reports"}
    assert set(app.amqp.queues.consume_from) == {"default"}
    assert app.connection_for_write().transport_cls is not None


def adopted(task: Any) -> bool:
    return (
        task.acks_late is True and issubclass(task.Request, FleetRequest) and task.retry.__name__ == "_retry"
    )


def test_on_a_fresh_app(tmp_path: Path, stock: Celery) -> None:
    assert install(stock, settings(tmp_path)) is stock
    check(stock)
    assert isinstance(stock.connection_for_write().transport, Transport)


def test_on_an_app_that_is_configured_and_has_its_tasks(tmp_path: Path, stock: Celery) -> None:
    @stock.task(name="early", acks_late=False, shared=False)
    def early() -> None: ...

    stock.config_from_object({"broker_url": "redis://elsewhere", "task_acks_late": False}, force=True)
    stock.finalize()
    assert stock.amqp.queues is not None
    install(stock, settings(tmp_path))
    check(stock)
    assert adopted(stock.tasks["early"])
    assert stock.tasks["early"]._tidegate_acks_early is True


def test_before_the_app_is_configured(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path))
    stock.config_from_object({"broker_url": "redis://elsewhere", "task_acks_late": False})

    @stock.task(name="late", shared=False)
    def late() -> None: ...

    check(stock)
    assert adopted(stock.tasks["late"])
    assert stock.tasks["late"]._tidegate_acks_early is False


def test_settings_with_a_prefix_lose(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path))
    stock.config_from_object(
        {"APP_BROKER_URL": "redis://elsewhere", "APP_TASK_ACKS_LATE": False, "APP_RESULT_BACKEND": "rpc://"},
        namespace="APP",
    )
    check(stock)
    assert isinstance(stock.backend, StoreBackend)


def test_twice_and_with_other_settings(tmp_path: Path, stock: Celery) -> None:
    first = settings(tmp_path)
    install(stock, first)
    install(stock, first)
    assert stock.conf.worker_concurrency == 2
    steps = set(stock.steps["worker"])
    assert fleet_of(stock).settings == first
    second = settings(tmp_path, more="[worker]\nconcurrency = 7\n")
    install(stock, second)
    assert set(stock.steps["worker"]) == steps
    assert fleet_of(stock).settings == second
    assert stock.conf.worker_concurrency == 7


def test_two_apps_in_one_process_keep_apart(tmp_path: Path, stock: Celery) -> None:
    (tmp_path / "b").mkdir()
    other = Celery("other", set_as_current=False)
    install(stock, settings(tmp_path))
    install(other, settings(tmp_path / "b", more="[queues.b]\n"))
    assert "b" in other.amqp.queues
    assert "b" not in fleet_of(stock).settings.queues
    assert fleet_of(stock) is not fleet_of(other)
    other.close()


def test_what_an_app_may_say_itself(tmp_path: Path, stock: Celery) -> None:
    stock.conf.update(worker_prefetch_multiplier=3, worker_concurrency=9, task_default_queue="reports")
    install(stock, settings(tmp_path))
    conf = stock.conf
    assert (conf.worker_prefetch_multiplier, conf.worker_concurrency, conf.task_default_queue) == (
        3,
        9,
        "reports",
    )


def test_what_an_app_may_not_say(tmp_path: Path, stock: Celery) -> None:
    stock.conf.update(
        worker_prefetch_multiplier=0, task_default_queue="celery", worker_disable_rate_limits=False
    )
    install(stock, settings(tmp_path))
    conf = stock.conf
    assert (conf.worker_prefetch_multiplier, conf.task_default_queue) == (1, "default")
    assert conf.worker_disable_rate_limits is True


def test_a_queue_that_is_not_declared_is_refused_with_a_hint(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path))
    with pytest.raises(UnknownQueue, match="did you mean 'reports'"):
        stock.send_task("t", queue="reprots")


def test_open_queues(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path, more="[queues]\nopen = true\n"))
    assert stock.amqp.queues["anything"].name == "anything"


@pytest.mark.parametrize(
    ("where", "kind"),
    [("same", "StoreBackend"), ("none", "DisabledBackend"), ("cache+memory://", "AttemptCacheBackend")],
)
def test_result_backends(
    tmp_path: Path, stock: Celery, where: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_RESULT_BACKEND", "rpc://")
    install(stock, settings(tmp_path, f'{NOWHERE}\nresult_backend = "{where}"'))
    assert type(stock.backend).__name__ == kind


class Own(Request):  # type: ignore[misc]
    """A project's own."""


class Base(Task):  # type: ignore[misc]
    """A project's own, made without any app."""

    acks_late = False
    acks_on_failure = False
    reject_on_worker_lost = True
    Request = Own


@shared_task(name="tests.unit.worker.shared", base=Base)
def shared() -> None: ...


def test_tasks_with_a_base_or_a_request_of_their_own_are_adopted(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path))
    task = stock.tasks["tests.unit.worker.shared"]
    assert adopted(task)
    assert issubclass(task.Request, Own)
    assert (task.acks_on_failure, task.reject_on_worker_lost) == (True, False)


def running(stock: Celery, tmp_path: Path, name: str, **request: Any) -> Any:
    """A task of that name, as it sees itself inside an attempt."""

    @stock.task(name=name, bind=True, shared=False)
    def body(self: Any) -> None: ...

    install(stock, settings(tmp_path))
    task = stock.tasks[name]
    header = {"tidegate": {"job_id": "1", "fence": 1}}
    task.push_request(id="id", called_directly=False, args=(1,), kwargs={"a": 2}, **header, **request)
    return task


def test_retry_inside_an_attempt_publishes_nothing(tmp_path: Path, stock: Celery) -> None:
    task = running(stock, tmp_path, "retries")
    with pytest.raises(Retry) as caught:
        task.retry(countdown=5, exc=ValueError("x"), throw=False)
    assert caught.value.when == 5
    with pytest.raises(Retry):
        task.retry(args=(1,), kwargs={"a": 2})


def test_retry_with_other_arguments_is_refused(tmp_path: Path, stock: Celery) -> None:
    task = running(stock, tmp_path, "changes")
    with pytest.raises(RetryWithChanges, match="publish another job"):
        task.retry(args=(2,))
    with pytest.raises(RetryWithChanges):
        task.retry(kwargs={"a": 3})


def test_outside_a_worker_retry_is_celerys_own(tmp_path: Path, stock: Celery) -> None:
    @stock.task(name="eager", bind=True, max_retries=1, default_retry_delay=0, shared=False)
    def eager(self: Any) -> int:
        if self.request.retries == 0:
            raise self.retry()
        return int(self.request.retries)

    install(stock, settings(tmp_path))
    assert stock.tasks["eager"].apply().get() == 1


@pytest.mark.parametrize("pool", ["gevent", "eventlet", "celery.concurrency.gevent:TaskPool"])
def test_pools_that_cannot_keep_a_lease_are_refused_by_name(pool: str) -> None:
    class Worker:
        pool_cls = pool

    with pytest.raises(ImproperlyConfigured, match=r"(gevent|eventlet) pool; use prefork, threads or solo"):
        PoolCheck(Worker())


def test_a_worker_without_an_event_loop_is_refused(tmp_path: Path, stock: Celery) -> None:
    install(stock, settings(tmp_path))
    with pytest.raises(ImproperlyConfigured, match="event loop"):
        FleetConsumer(None, app=stock, hub=None)


def test_a_channel_without_install_says_so() -> None:
    with pytest.raises(LookupError, match=r"call tidegate.install\(app\) first"):
        binding("nobody")
