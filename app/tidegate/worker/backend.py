"""Result backends that know attempts: a failed attempt is not the failure of its job.

Celery's `mark_as_failure` stores FAILURE, counts the chord part and runs the errbacks, in the child or in the main
process. All of that is terminal, and whether a failure is terminal is the authority's decision. So while a request
is an attempt of ours, the failure is stored as RETRY and goes no further. Everything else passes.
"""

from __future__ import annotations

import functools
from typing import Any

from celery import Celery, states
from celery.app.backends import by_url
from celery.backends.redis import RedisBackend

from tidegate.domain.errors import StoreUnavailable
from tidegate.transport.binding import OPTION, Binding, binding
from tidegate.worker.ends import attempt_ref

#: prefix of a `result_backend` URL that leads to `wrapped`
WRAPPED = "tidegate.worker.backend:wrapped"
#: `result_backend` of a fleet that keeps its results in the store
SAME = "tidegate.worker.backend:same+tidegate://results"


class AttemptBackend:
    """Mixin for any Celery backend."""

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
            self.store_result(  # type: ignore[attr-defined]
                task_id, exc, states.RETRY, traceback=traceback, request=request
            )
        return None


class StoreBackend(AttemptBackend, RedisBackend):
    """Results beside the jobs, on the fleet's own server and under its prefix.

    Where the server is, is asked when the first connection is made: importing an app must start nothing.
    """

    def __init__(self, app: Celery) -> None:
        super().__init__(app=app)
        self.fleet: Binding = binding(app.conf.broker_transport_options[OPTION])
        self.url = SAME
        errors: Any = self.connection_errors  # type: ignore[has-type]
        self.connection_errors = (*errors, StoreUnavailable)

    def on_task_call(self, producer: Any, task_id: str) -> None:
        """Nothing: who waits for a result subscribes when it does.

        Celery would subscribe at each publish, which costs two more commands and, while the server is away, blocks the
        publish for 20 s and more.
        """

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
