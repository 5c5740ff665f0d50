"""What our request, consumer and task code assume of Celery 5.7's worker. If one of these fails, an upgrade of Celery
has moved the ground, and the code named in the test needs a look before anything else.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import inspect
import threading
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from billiard.einfo import ExceptionInfo
from billiard.exceptions import TimeLimitExceeded
from billiard.pool import TimeoutHandler
from celery import Celery, states
from celery.concurrency import base as pools
from celery.concurrency.thread import TaskPool as Threads
from celery.exceptions import Retry
from celery.worker import control
from celery.worker.consumer import Consumer
from celery.worker.request import Request, create_request_cls
from kombu.asynchronous import Hub
from kombu.transport.redis import Channel, MultiChannelPoller, Transport


def raised(error: BaseException) -> Any:
    try:
        raise error
    except BaseException:  # noqa: BLE001 - billiard's form of whatever it is
        return ExceptionInfo()


@pytest.fixture
def app() -> Celery:
    return Celery("contract", set_as_current=False, broker="memory://", backend="cache+memory://")


@pytest.fixture
def task(app: Celery) -> Any:
    @app.task(name="contract.task", acks_late=True, shared=False)
    def body() -> None: ...

    return app.tasks["contract.task"]


def request(app: Celery, task: Any, cls: type = Request, **headers: Any) -> Any:
    message = SimpleNamespace(
        headers={"id": "id", "task": task.name, **headers},
        body="[[], {}, {}]",
        content_type="application/json",
        content_encoding="utf-8",
        payload=[[], {}, {}],
        delivery_info={},
        properties={},
    )
    return cls(message, app=app, task=task, on_ack=lambda *_: None, on_reject=lambda *_: None)


def test_the_versions_are_those_that_were_read() -> None:
    assert version("celery").startswith("5.7.")
    assert version("kombu").startswith("5.7.")


def test_the_generated_request_class_shadows_two_methods(app: Celery, task: Any) -> None:
    """request.py wraps exactly these two in __init_subclass__."""
    pool = SimpleNamespace(apply_async=None)
    made = create_request_cls(Request, task, pool, "host", None, app=app)
    hooks = {
        "on_failure",
        "on_timeout",
        "on_retry",
        "acknowledge",
        "reject",
        "on_accepted",
        "_announce_revoked",
    }
    assert {"on_success", "execute_using_pool"} <= set(made.__dict__)
    assert not hooks & set(made.__dict__)


def test_celery_lets_a_memory_error_end_the_worker(app: Celery, task: Any) -> None:
    """FleetRequest.on_failure catches it."""
    with pytest.raises(MemoryError):
        request(app, task).on_failure(raised(MemoryError()))


def test_a_limit_in_the_message_replaces_the_tasks_own(app: Celery, task: Any) -> None:
    """FleetRequest.__init__ takes the shorter one."""
    task.time_limit = 1
    asked: dict[str, Any] = {}
    pool = SimpleNamespace(apply_async=lambda *_, **options: asked.update(options))
    made = create_request_cls(Request, task, pool, "host", None, app=app)
    request(app, task, made, timelimit=[50, None]).execute_using_pool(pool)
    assert asked["timeout"] == 50


def test_a_hard_limit_is_told_twice_before_the_child_is_killed() -> None:
    """FleetRequest.on_timeout ignores the second, and `_ends_later` waits for the third."""
    heard: list[str] = []

    class Handler(TimeoutHandler):  # type: ignore[misc]
        def __init__(self) -> None:
            self.processes = [SimpleNamespace(pid=1)]

        def _trywaitkill(self, worker: Any) -> None:
            heard.append("kill")

    job = SimpleNamespace(
        _timeout=3,
        _job=0,
        _worker_pid=1,
        ready=lambda: False,
        _set=lambda _, result: heard.append(type(result[1].exception.exc).__name__),
        handle_timeout=lambda soft: heard.append("on_timeout"),
    )
    Handler().on_hard_timeout(job)
    assert heard == [TimeLimitExceeded.__name__, "on_timeout", "kill"]


def test_terminate_acknowledges_before_the_child_is_dead(app: Celery, task: Any) -> None:
    """FleetRequest.terminate says nothing by itself."""
    one = request(app, task)
    one.time_start, one.worker_pid = 1.0, 1
    one.terminate(SimpleNamespace(terminate_job=lambda *_: None), signal="TERM")
    assert one.acknowledged


def test_sys_exit_in_a_thread_arrives_at_the_callback_of_success() -> None:
    """request.py sends it to on_failure; on_success could not even unpack it."""
    heard: list[Any] = []

    def leave() -> None:
        raise SystemExit(3)

    pools.apply_target(leave, callback=heard.append)
    assert isinstance(heard[0], ExceptionInfo)


def test_an_error_that_leaves_the_tracer_vanishes_in_the_thread_pool() -> None:
    """request.py looks at the future."""
    pool = Threads(1)
    heard: list[Any] = []

    def fail() -> None:
        raise MemoryError

    result = pool.on_apply(fail, (), callback=heard.append)
    with pytest.raises(MemoryError):
        result.f.result(10)
    assert heard == []
    pool.executor.shutdown()


def test_pools_tell_of_the_start_before_the_body_and_do_not_start_it_if_that_raises() -> None:
    """FleetRequest.on_accepted is the gate of threads and solo."""
    heard: list[str] = []

    def no(*_: Any) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        pools.apply_target(lambda: heard.append("body"), accept_callback=no)
    assert heard == []


def test_retry_publishes_from_the_child(app: Celery, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """task.py replaces it for attempts."""
    sent: list[Any] = []
    monkeypatch.setattr(app, "send_task", lambda *args, **_: sent.append(args))
    task.push_request(id="id", called_directly=False, args=(), kwargs={}, delivery_info={})
    with pytest.raises(Retry):
        task.retry(countdown=1)
    assert len(sent) == 1


def test_a_lost_connection_drops_what_has_not_started() -> None:
    """FleetConsumer.on_close replaces it, and keeps maintain_pool()."""
    source = inspect.getsource(Consumer.on_close)
    assert "semaphore.clear()" in source
    assert "pool.flush()" in source


def test_the_four_ends_without_a_request() -> None:
    """FleetConsumer names them before Celery settles the message."""
    for name in ("on_decode_error", "on_unknown_message", "on_unknown_task", "on_invalid_task"):
        assert any(
            verb in inspect.getsource(getattr(Consumer, name)) for verb in ("ack(", "reject_log_error(")
        )


def test_add_consumer_says_ok_before_anything_is_known() -> None:
    """control.py answers instead."""
    state = SimpleNamespace(consumer=SimpleNamespace(call_soon=lambda *_, **__: None, add_task_queue=None))
    source = inspect.getsource(control.Panel.data["add_consumer"])
    assert "desk" in source or control.Panel.data["add_consumer"](state, "any") == {"ok": "add consumer any"}


def test_the_event_loop_wakes_up_for_other_threads() -> None:
    """request.py relies on it: a thread of the pool frees a slot."""
    hub, heard = Hub(), threading.Event()
    loop = hub.create_loop()
    hub.add_reader(hub._create_waker().fileno(), lambda: None)
    threading.Timer(0.05, hub.call_soon, (heard.set,)).start()
    for _ in range(5):
        next(loop)
        if heard.is_set():
            break
    assert heard.is_set()
    hub.close()


def test_a_key_error_counts_as_a_lost_connection_in_kombu() -> None:
    """channel.py guards each delivery, or one bad message would make the worker reconnect for ever."""
    assert KeyError in Transport.connection_errors


def test_the_surface_of_kombus_channel_and_poller() -> None:
    for name in (
        "_brpop_start",
        "_brpop_read",
        "_poll_error",
        "_in_poll",
        "_brpop_sent_at",
        "_flush_brpop_reauth",
    ):
        assert hasattr(Channel, name), name
    poller = MultiChannelPoller()
    for name in ("_fd_to_chan", "_paused_brpop", "on_poll_start", "after_read", "_in_protected_read"):
        assert hasattr(poller, name), name


def test_kombu_leaves_its_callback_on_the_event_loop_of_a_lost_connection() -> None:
    """transport.py takes the old one away and adds one of its own."""
    source = inspect.getsource(Transport.register_with_event_loop)
    assert source.count("on_tick.add(") == 1
    assert "on_tick.discard" not in source
    assert "on_tick.remove" not in source


def test_a_failure_is_terminal_in_one_method_of_the_backend(app: Celery, task: Any) -> None:
    """backend.py intercepts it there, for children and main process alike."""
    parameters = list(inspect.signature(type(app.backend).mark_as_failure).parameters)
    assert parameters == [
        "self", "task_id", "exc", "traceback", "request", "store_result", "call_errbacks", "state",
    ]  # fmt: skip
    one = request(app, task)
    app.backend.mark_as_failure("id", ValueError("x"), request=one._context)
    assert app.AsyncResult("id").state == states.FAILURE


def test_assignment_wins_over_settings_with_a_prefix() -> None:
    """install.py assigns."""
    app = Celery("prefixed", set_as_current=False)
    app.config_from_object({"CELERY_TASK_ACKS_LATE": False}, namespace="CELERY", force=True)
    assert app.conf.task_acks_late is False
    app.conf["task_acks_late"] = True
    assert app.conf.task_acks_late is True
