"""Result backends that know attempts: a failed attempt is not the failure of its job.

Celery's `mark_as_failure` stores FAILURE, counts the chord part and runs the errbacks, in the child or in the main
process. All of that is terminal, and whether a failure is terminal is the authority's decision. So while a request
is an attempt of ours, the failure is stored as RETRY and goes no further. Everything else passes.

A result store that is away for a moment must not turn work that was done into a failure, nor stop a main loop.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery, states
from celery.app.backends import by_url
from celery.backends.redis import RedisBackend, ResultConsumer

from tidegate.domain.errors import StoreUnavailable
from tidegate.store.errors import OutOfMemoryError, ReadOnlyError
from tidegate.transport.binding import OPTION, Binding, binding
from tidegate.worker.ends import attempt_ref

logger = logging.getLogger(__name__)

#: seconds for which a done body waits to store its result, and the longest pause between two attempts. Where results
#: are kept in the fleet's own store the fence ends the body sooner
RESULT_PATIENCE, RESULT_PAUSE = 60.0, 1.0

#: prefix of a `result_backend` URL that leads to `wrapped`
WRAPPED = "tidegate.worker.backend:wrapped"
#: `result_backend` of a fleet that keeps its results in the store
SAME = "tidegate.worker.backend:same+tidegate://results"


_STORE = """#!lua flags=allow-oom
if ARGV[1] == '0' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2]) end
redis.call('PUBLISH', KEYS[1], ARGV[2])
"""


class AttemptBackend:
    """Mixin for any Celery backend."""

    #: what a lost connection raises; backends of Celery that talk to a server have more of their own
    connection_errors: tuple[type[BaseException], ...] = (OSError,)

    def mark_as_done(
        self, task_id: str, result: Any, request: Any = None, store_result: bool = True, **options: Any
    ) -> Any:
        """Celery's, tried again while the connection fails: storing a result twice changes nothing."""
        plain = super().mark_as_done  # type: ignore[misc]
        attempt = functools.partial(plain, task_id, result, request, store_result, **options)
        if request is None or attempt_ref(request) is None:
            return attempt()
        deadline, pause = time.monotonic() + RESULT_PATIENCE, 0.05
        while True:
            try:
                return attempt()
            except self.connection_errors as error:
                if time.monotonic() + pause >= deadline:
                    raise
                logger.warning("the result of %s cannot be stored yet, trying again: %s", task_id, error)
                time.sleep(pause)
                pause = min(2 * pause, RESULT_PAUSE)

    def mark_as_failure(
        self,
        task_id: str,
        exc: BaseException,
        traceback: Any = None,
        request: Any = None,
        store_result: bool = True,
        call_errbacks: bool = True,
        state: str = states.FAILURE,
    ) -> Any:
        if request is None or attempt_ref(request) is None:
            return super().mark_as_failure(  # type: ignore[misc]
                task_id,
                exc,
                traceback=traceback,
                request=request,
                store_result=store_result,
                call_errbacks=call_errbacks,
                state=state,
            )
        if store_result:
            try:
                self.store_result(  # type: ignore[attr-defined]
                    task_id, exc, states.RETRY, traceback=traceback, request=request
                )
            except self.connection_errors as error:
                # the outcome goes its own way; this may be the main loop, which must not wait
                logger.warning("the failed attempt of %s is not shown in its result: %s", task_id, error)
        return None


class _Leaving(threading.local):
    now = False


class Subscription(ResultConsumer):
    """Who waits for results, without Celery's habit of reconnecting in order to say good-bye.

    A handle that is collected unsubscribes; if its server is gone, Celery tries for 20 s and more to get it back,
    inside the garbage collector, and then raises there.
    """

    _leaving = _Leaving()

    def cancel_for(self, task_id: str) -> None:
        """Unsubscribe; a subscription whose connection is gone has ended by itself."""
        if (
            self._pubsub is None or self._pubsub.connection is None
        ):  # redis-py would connect in order to unsubscribe
            self.subscribed_to.discard(self._get_key_for_task(task_id))
            return
        self._leaving.now = True
        try:
            super().cancel_for(task_id)
        finally:
            self._leaving.now = False

    @contextmanager
    def reconnect_on_error(self) -> Iterator[None]:
        if not self._leaving.now:
            with super().reconnect_on_error():
                yield
            return
        try:
            yield
        except (OSError, *self._connection_errors) as error:
            logger.debug("not unsubscribed, the connection is gone: %s", error)


class StoreBackend(AttemptBackend, RedisBackend):
    """Results beside the jobs, on the fleet's own server and under its prefix.

    Where the server is, is asked when the first connection is made: importing an app must start nothing.
    """

    ResultConsumer = Subscription

    def __init__(self, app: Celery) -> None:
        super().__init__(app=app)
        self.fleet: Binding = binding(app.conf.broker_transport_options[OPTION])
        self.url = SAME
        errors: Any = self.connection_errors
        # full memory and a failover pass, as a lost connection does; the body is done and must not run again for them
        self.connection_errors = (*errors, StoreUnavailable, OutOfMemoryError, ReadOnlyError)

    @property
    def retry_policy(self) -> dict[str, Any]:
        """How often Celery tries a command again: as usual, but once in the main loop of a worker, where bodies of
        threads and solo have the patience of `mark_as_done`."""
        usual: dict[str, Any] = super().retry_policy
        return usual if self.fleet.desk is None else {**usual, "max_retries": 0}

    def on_task_call(self, producer: Any, task_id: str) -> None:
        """Nothing: who waits for a result subscribes when it does.

        Celery would subscribe at each publish, which costs two more commands and, while the server is away, blocks the
        publish for 20 s and more.
        """

    def _set(self, key: str, value: Any, expires: int | None = None) -> None:
        """Celery's SETEX and PUBLISH in one script that full memory does not stop: a done body must be able to end, or
        nothing ever frees memory again. Producers are refused long before."""
        # whole each time: between SCRIPT LOAD and EVALSHA the server may be told to forget its scripts
        self.client.eval(_STORE, 1, key, expires or self.expires or 0, value)

    def _get_pool(self, **params: Any) -> Any:
        target = self.fleet.store.target
        for name in ("host", "port", "db", "username", "password", "path", "connection_class"):
            params.pop(name, None)
        params |= {"db": target.db, "username": target.username, "password": target.password, "protocol": 2}
        if target.scheme == "unix":
            params.pop("socket_connect_timeout", None)
            params.pop("socket_keepalive", None)
            params["path"] = target.path
        else:
            params |= {"host": target.host, "port": target.port}
        params["connection_class"] = self.fleet.store.connection_class(target.scheme)
        return super()._get_pool(**params)

    def __reduce__(self, args: Any = (), kwargs: Any = None) -> Any:
        return same, (self.app,)


def same(app: Celery, url: str | None = None) -> StoreBackend:
    """What Celery calls for `SAME`."""
    return StoreBackend(app=app)


def wrapped(app: Celery, url: str) -> Any:
    """What Celery calls for `WRAPPED+URL`: the backend of that URL, made to know attempts."""
    kind, rest = by_url(url, app.loader)
    return _with_attempts(kind)(app=app, url=rest)


@functools.cache
def _with_attempts(kind: type) -> type:
    return type(f"Attempt{kind.__name__}", (AttemptBackend, kind), {"__module__": kind.__module__})
