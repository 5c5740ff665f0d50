"""The finalizer: no dead job is taken for told before a worker has been asked, and no duty of beat ends in silence."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest
from tests.harness.fixtures import OwnServer
from tests.lua.rig import CLOCK, Rig

from tidegate.config import Settings
from tidegate.domain.finalize import TASK
from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason
from tidegate_beat.finalizer import Finalizer
from tidegate_beat.loop import Loop


@pytest.fixture
def rig(own_server: OwnServer, fleet: str) -> Iterator[Rig]:
    server, plain = own_server(), Settings()
    rig = Rig(
        server.client(),
        server.url,
        replace(plain, fleet=replace(plain.fleet, name=fleet)),
        clock_ms=CLOCK,
    )
    rig.worker()
    rig.tick(1_000)
    yield rig
    rig.close()


def die(rig: Rig, queue: str = "default") -> None:
    rig.put("op", queue=queue)
    rig.end(rig.one(queues=(queue,)), OutcomeKind.UNDELIVERABLE, Reason.UNKNOWN_TASK)


def test_full_memory_leaves_the_dead_untold_until_there_is_room(rig: Rig) -> None:
    die(rig)
    finalizer = Finalizer(rig.store, rig.settings)
    rig.client.config_set("maxmemory", 1)
    assert finalizer.step() is False
    assert len(rig.store.untold()) == 1
    rig.client.config_set("maxmemory", 0)
    rig.tick(2_000)
    rig.store.reap()  # looks at memory
    assert finalizer.step() is True
    finalizer.step()
    assert rig.store.untold() == ()
    assert rig.one().task == TASK


def test_a_queue_that_the_settings_name_no_more(rig: Rig) -> None:
    die(rig, "gone")
    finalizer = Finalizer(rig.store, rig.settings)
    assert finalizer.step() is True
    assert rig.one().task == TASK, "on the default queue"


def test_an_unexpected_error_is_said_and_the_duty_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    again = Event()
    calls: list[int] = []

    def step() -> bool:
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("nobody expected this")
        again.set()
        return False

    loop = Loop("duty", step, 0.01)
    with caplog.at_level(logging.ERROR):
        loop.start()
        assert again.wait(5)
        assert loop.stop()
    assert "nobody expected" in caplog.text
