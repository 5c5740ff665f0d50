"""A lost reply whose replay meets full memory: the server refuses the replay, but the job may be in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.faults.lossy import Way, script
from tests.faults.offer import Told, offer
from tests.harness.fixtures import MakeProxy
from tests.harness.link import Cut
from tests.harness.proxy import Proxy
from tests.harness.resp import Frame
from tests.integration.full_memory.stage import Stage

from tidegate.client.producer import Producer, with_settings
from tidegate.domain.errors import QueueFull
from tidegate.domain.states import State
from tidegate.store.script import library
from tidegate.worker import identity


def is_enqueue(frame: Frame) -> bool:
    return script(frame) == "enqueue"


def told_after_full_memory(
    stage: Stage, proxy: Proxy, order: Callable[[], Cut], way: Way = Way.NAMED, number: int = 1
) -> list[Told]:
    """Offer jobs, cut as ordered, fill the memory, let the producer ask again: what it is told."""
    settings = stage.producer.settings
    sender: Producer = with_settings(
        replace(
            settings,
            broker=replace(settings.broker, url=proxy.url),
            fleet=replace(settings.fleet, enqueue_timeout=30.0),
        )
    )
    stage.client.function_load(library().source, replace=True)
    sender.fleet.store.snapshot()  # it has a connection, which nobody refuses
    proxy.refuse()
    cut = order()
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(offer, sender, way, [f"job-{n}" for n in range(number)])
        cut.wait()
        stage.take(-2_000_000)
        proxy.heal()
        told = found.result(timeout=60)
    identity.detach(sender.app)
    sender.fleet.close()
    sender.app.close()
    return told


@pytest.fixture
def proxy(stage: Stage, make_proxy: MakeProxy) -> Proxy:
    return make_proxy(stage.server.url)


def test_what_was_taken_in_is_not_said_to_be_refused(stage: Stage, proxy: Proxy) -> None:
    (told,) = told_after_full_memory(stage, proxy, lambda: proxy.lose_reply(is_enqueue))
    assert stage.store.state("job-0") is State.WAITING
    assert told.status == "accepted"


def test_what_never_arrived_is_refused(stage: Stage, proxy: Proxy) -> None:
    (told,) = told_after_full_memory(stage, proxy, lambda: proxy.lose_request(is_enqueue))
    assert stage.store.state("job-0") is None
    assert isinstance(told.error, QueueFull)


def test_each_part_of_a_bulk_is_told_for_itself(stage: Stage, proxy: Proxy) -> None:
    """The replies of the second script and of those behind it are lost; what the third did only the store knows."""
    told = told_after_full_memory(
        stage, proxy, lambda: proxy.lose_reply(is_enqueue, after=2), Way.MANY_KEYED, 250
    )
    statuses = [one.status for one in told]
    assert statuses[:200] == ["accepted"] * 200
    assert statuses.count("accepted") == stage.snapshot().queues["default"].waiting
