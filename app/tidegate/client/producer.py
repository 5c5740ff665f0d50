"""Through which app and which store this process publishes."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from celery import Celery

from tidegate.config import Settings, load
from tidegate.transport.binding import Binding
from tidegate.worker.application import application
from tidegate.worker.identity import attached
from tidegate.worker.install import fleet_of, install


@dataclass(frozen=True, slots=True)
class Producer:
    """An installed app, its settings and its fleet."""

    app: Celery
    settings: Settings
    fleet: Binding


_lock = threading.RLock()  # the app that is imported may itself enqueue


def producer() -> Producer:
    """The app that `tidegate.install` was called for last.

    Without one: the app that `fleet.celery_app` names, else an app of our own, with the settings that
    `tidegate.config.load` finds. Nothing is connected yet. Raises ConfigError.
    """
    if not attached():
        with _lock:
            if not attached():
                settings = load()
                if settings.fleet.celery_app:
                    application(settings)
                else:
                    with_settings(settings)
    latest = attached()[-1]
    return Producer(latest.app, latest.settings, fleet_of(latest.app))


def with_settings(settings: Settings) -> Producer:
    """An app of our own for these settings, whatever else this process has (the command line)."""
    # not the current app: this process may have another one, whose tasks are none of our business
    app = install(Celery(f"tidegate-{settings.fleet.name}", set_as_current=False), settings)
    return Producer(app, settings, fleet_of(app))


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # a thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)
