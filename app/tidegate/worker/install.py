"""`tidegate.install(app)`: an ordinary Celery app, its tasks and its callers, on Tidegate.

Nothing connects here: a process that only imports its app must not need a store, nor start one.
"""

from __future__ import annotations

from typing import Any

from celery import Celery, bootsteps, current_app
from celery.exceptions import ImproperlyConfigured

from tidegate.config import Settings, load
from tidegate.embedded.endpoint import broker_url
from tidegate.transport.binding import OPTION, Binding, bind, binding
from tidegate.worker import celery_settings, finalize, identity
from tidegate.worker.bootstep import LeaseKeeping
from tidegate.worker.task import adopt_all

_STOCK_AMQP = "celery.app.amqp:AMQP"
_INSTALLED = "_tidegate_fleet"
_DEFAULTED = "_tidegate_defaulted"  # names of settings that the app left to us


def install(app: Celery | None = None, settings: Settings | None = None) -> Celery:
    """Make `app` (the current one if none is given) publish to, and run its workers on, the fleet of `settings`.

    Before or after its tasks are defined, before or after it is configured, once or again (the latest settings win);
    in workers and in processes that only publish. settings: those of `tidegate.config.load()` if none are given.
    Raises ConfigError.
    """
    app = app if app is not None else current_app._get_current_object()
    settings = settings if settings is not None else load()
    fleet = bind(_name(settings), settings, broker_url)
    first = getattr(app, _INSTALLED, None) is None
    setattr(app, _INSTALLED, fleet)
    if app.amqp_cls == _STOCK_AMQP:
        app.amqp_cls = "tidegate.worker.amqp:FleetAMQP"
    # CELERY_RESULT_BACKEND in the environment would win over the setting
    app.backend_cls = celery_settings.result_backend(settings)
    identity.attach(app, settings)
    if first:
        app.on_after_configure.connect(_on_configured, sender=app, weak=False)
        app.on_after_finalize.connect(_on_finalized, sender=app, weak=False)
        app.steps["worker"] |= {PoolCheck, LeaseKeeping}
    if app.configured:
        _configure(app)
    if app.finalized:
        _on_finalized(app)
    return app


def fleet_of(app: Celery) -> Binding:
    """The fleet that `install` gave to the app. LookupError if it did not."""
    return binding(app.conf.broker_transport_options.get(OPTION, ""))


def _name(settings: Settings) -> str:
    """Different settings in one process are different fleets, even if they share a name (tests do that)."""
    return f"{settings.fleet.name}/{settings.digest()[:16]}/{settings.data_dir}"


def _on_configured(sender: Celery, **_: Any) -> None:
    _configure(sender)


def _on_finalized(sender: Celery, **_: Any) -> None:
    finalize.register(sender)
    adopt_all(sender)


def _configure(app: Celery) -> None:
    fleet: Binding = getattr(app, _INSTALLED)
    conf = app.conf
    ours: set[str] = app.__dict__.setdefault(_DEFAULTED, set())
    for name, value in celery_settings.default(fleet.settings).items():
        if name in ours or not conf.value_set_for(name):
            ours.add(name)
            conf[name] = value
    for name, value in celery_settings.forced(fleet.settings, fleet.name).items():
        conf[name] = value
    if conf.task_default_queue not in fleet.settings.queues and not fleet.settings.queues_open:
        conf["task_default_queue"] = "default"
    conf["worker_prefetch_multiplier"] = max(1, conf.worker_prefetch_multiplier)  # 0 is "claim everything"
    _forget_old_connections(app)


def _forget_old_connections(app: Celery) -> None:
    """What the app has made of its earlier settings."""
    app.__dict__.pop("amqp", None)
    app._pool = None
    app._backend_cache = None
    app._local.__dict__.pop("backend", None)


class PoolCheck(bootsteps.Step):
    """Refuses pools whose bodies can neither be killed nor counted on to let a heartbeat through."""

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        pool = worker.pool_cls if isinstance(worker.pool_cls, str) else worker.pool_cls.__module__
        for name in ("gevent", "eventlet"):
            if name in pool:
                raise ImproperlyConfigured(
                    f"Tidegate cannot keep leases in the {name} pool; use prefork, threads or solo"
                )
