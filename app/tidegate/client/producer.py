"""Through which app and which store this process publishes."""

from __future__ import annotations

import importlib
import os
import threading
from dataclasses import dataclass

from celery import Celery

from tidegate.config import ConfigError, Fault, Settings, load
from tidegate.transport.binding import Binding
from tidegate.worker.identity import attached
from tidegate.worker.install import fleet_of, install


@dataclass(frozen=True, slots=True)
class Producer:
    """An installed app, its settings and its fleet."""

    app: Celery
    settings: Settings
    fleet: Binding


_lock = threading.Lock()


def producer() -> Producer:
    """The app that `tidegate.install` was called for last.

    Without one: the app that `fleet.celery_app` names, else an app of our own, installed with the settings that
    `tidegate.config.load` finds. Nothing is connected yet. Raises ConfigError.
    """
    if not attached():
        with _lock:
            if not attached():
                settings = load()
                install(_app(settings), settings)
    latest = attached()[-1]
    return Producer(latest.app, latest.settings, fleet_of(latest.app))


def with_settings(settings: Settings) -> Producer:
    """An app of our own for these settings, whatever else this process has (the command line)."""
    app = Celery(f"tidegate-{settings.fleet.name}", set_as_current=False)
    install(app, settings)
    return Producer(app, settings, fleet_of(app))


def _app(settings: Settings) -> Celery:
    named = settings.fleet.celery_app
    if not named:
        # not the current app: this process may have another one, whose tasks are none of our business
        return Celery(f"tidegate-{settings.fleet.name}", set_as_current=False)
    module, _, attribute = named.partition(":")
    try:
        app = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(str(settings.source or ""), (Fault("fleet.celery_app", str(error)),)) from error
    if not isinstance(app, Celery):
        raise ConfigError(
            str(settings.source or ""),
            (Fault("fleet.celery_app", f"{named} is a {type(app).__name__}, no Celery app"),),
        )
    return app


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
