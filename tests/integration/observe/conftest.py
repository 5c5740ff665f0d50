"""A fleet on a test clock with an exporter over it, and somebody who scrapes."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.server import Server
from tests.lua.rig import CLOCK, Rig

from tidegate import __version__
from tidegate.config import QueueSettings, Sections, Settings
from tidegate.observe import Exporter

#: name and sorted labels → number
Scrape = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def get(url: str, method: str = "GET", timeout: float = 20.0) -> tuple[int, str]:
    """Status and text."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def parse(text: str) -> Scrape:
    """Samples of a scrape; no series may be there twice."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


def scrape(url: str) -> Scrape:
    status, text = get(f"{url}/metrics")
    assert status == 200, text
    return parse(text)


def series(found: Scrape, name: str, **labels: str) -> float:
    """The number of one series; KeyError if it is not there."""
    return found[f"tidegate_{name}", tuple(sorted(labels.items()))]


def settings(fleet: str) -> Settings:
    """Two queues, the small one with room for ten."""
    plain = Settings()
    return replace(
        plain,
        fleet=replace(plain.fleet, name=fleet),
        queues=Sections({"default": QueueSettings(max_depth=1000), "small": QueueSettings(max_depth=10)}),
        queues_open=True,
        observability=replace(plain.observability, metrics_address="127.0.0.1:0"),
    )


class MakeRig(Protocol):
    def __call__(self, server: Server, fleet: str) -> Rig: ...


@pytest.fixture
def make_rig() -> Iterator[MakeRig]:
    rigs: list[Rig] = []

    def make(server: Server, fleet: str) -> Rig:
        rig = Rig(server.client(), server.url, settings(fleet), clock_ms=CLOCK)
        rigs.append(rig)
        return rig

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make_rig: MakeRig, shared_server: Server, fleet: str) -> Rig:
    return make_rig(shared_server, fleet)


@pytest.fixture
def url(rig: Rig) -> Iterator[str]:
    """Where an exporter of the rig's fleet listens."""
    with Exporter(rig.store, rig.settings, __version__) as exporter:
        yield exporter.url
