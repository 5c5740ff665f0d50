"""The beat process: schedules, the authority and the house-keeping. Any number may run; no claim needs one."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tidegate.config import Settings, load
from tidegate.embedded.endpoint import broker_url
from tidegate.retry import Authority, Policies
from tidegate.store import Store
from tidegate_beat.emitter import Emitter
from tidegate_beat.finalizer import Finalizer
from tidegate_beat.loop import Loop
from tidegate_beat.registry import Schedule, schedules

log = logging.getLogger(__name__)

#: seconds between two rounds of each duty
AUTHORITY, HOUSE, EMITTER = 0.5, 1.0, 1.0
#: leases and due jobs of one step of the house
LEASES, DUE = 100, 100


def duties(store: Store, settings: Settings, known: Mapping[str, Schedule]) -> tuple[Loop, ...]:
    """Everything that beat does, each as a loop of its own. known: the schedules of the settings."""
    authority, finalizer = Authority(store, Policies(store, settings)), Finalizer(store, settings)
    emitter = Emitter(store, settings, known)
    return (
        Loop("emitter", emitter.step, EMITTER, emitter.rest),
        Loop("authority", lambda: authority.step().more, AUTHORITY),
        Loop("reaper", lambda: _reap(store), HOUSE),
        Loop("finalizer", finalizer.step, AUTHORITY),
        Loop("promoter", lambda: store.promote(DUE) == DUE, HOUSE),
    )


def _reap(store: Store) -> bool:
    judged = store.reap(LEASES)
    if judged.requeued or judged.failed:
        log.warning("leases ended: %d jobs go back, %d have failed", judged.requeued, judged.failed)
    return judged.requeued + judged.failed == LEASES


def run(config: Path | None, ready: Callable[[Sequence[Loop]], None] = lambda loops: None) -> None:
    """Until SIGTERM or Ctrl-C. Raises ConfigError, StoreUnavailable, StoreRefused before anything runs."""
    settings = load(config)
    known = schedules(settings)
    for warning in settings.warnings:
        log.warning("%s", warning)
    store = Store.open(settings, "beat", url=broker_url(settings))
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    loops = duties(store, settings, known)
    for loop in loops:
        loop.start()
    log.info("beat runs: %s", ", ".join(loop.name for loop in loops))
    ready(loops)
    stopped.wait()
    for loop in loops:
        if not loop.stop():
            log.warning(
                "%s is in the middle of something; its decisions hold once, whoever finishes", loop.name
            )
    store.close()
