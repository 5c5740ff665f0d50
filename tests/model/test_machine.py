"""The scripts do what the reference model says, in whatever order things happen; the suite would notice if not."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import Phase, Verbosity
from hypothesis import settings as hypothesis_settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from tests.harness.fixtures import OwnServer, delete_fleet
from tests.harness.server import Kind, Server
from tests.lua.rig import Rig, outcome, settings

from tidegate.domain.errors import TidegateError
from tidegate.domain.job import OutcomeKind, Settled, SettleWord
from tidegate.domain.states import State
from tidegate.domain.verdict import Duplicate
from tidegate.store.script import COMMANDS, load

from .machine import LEASE, machine_on
from .mutant import COMMON, FORGETFUL, MUTANTS, RARE, Mutant


class Ground:
    """Gives each example a fleet of its own and clears the one before."""

    def __init__(self, server: Server) -> None:
        self.server, self.client, self.count = server, server.client(), 0

    def __call__(self) -> Rig:
        self.clear()
        self.count += 1
        return Rig(self.client, self.server.url, settings(self.name, lease=LEASE / 1000))

    @property
    def name(self) -> str:
        return f"model-{self.count}"

    def clear(self) -> None:
        delete_fleet(self.client, self.name)


@pytest.fixture(autouse=True)
def _quick_and_quiet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """No pause before a lost reply is asked for again, none for a file there is not, no warning from 200 fleets."""
    monkeypatch.setattr("tidegate.store.line._PAUSE", 0.001)
    monkeypatch.setattr("tidegate.store.Store._make_durable", lambda store, line: None)
    caplog.set_level("ERROR", logger="tidegate.store.start")


def run(server: Server, how: hypothesis_settings) -> None:
    ground = Ground(server)
    try:
        run_state_machine_as_test(machine_on(ground), settings=how)
    finally:
        ground.clear()


def test_scripts_and_model_agree(shared_server: Server) -> None:
    run(shared_server, hypothesis_settings(max_examples=60, stateful_step_count=40))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_scripts_and_model_agree_for_longer(shared_server: Server) -> None:
    run(shared_server, hypothesis_settings(max_examples=140, stateful_step_count=50))


@pytest.mark.redis
@pytest.mark.timeout(300)
def test_scripts_and_model_agree_on_the_distributions_redis(own_server: OwnServer) -> None:
    run(own_server(Kind.REDIS), hypothesis_settings(max_examples=40, stateful_step_count=40))


# -- mutants: broken scripts must be found

_HUNT = hypothesis_settings(
    max_examples=150,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    verbosity=Verbosity.quiet,
)


@pytest.fixture
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mutant:
    """The store runs with one rule broken."""
    mutant: Mutant = request.param
    for module in ("store", "timetable"):
        monkeypatch.setattr(f"tidegate.store.{module}.load", mutant.load)
    return mutant


def ids(mutant: Mutant) -> str:
    return mutant.name.replace(" ", "-")


def test_each_mutant_changes_some_script() -> None:
    for mutant in MUTANTS:
        assert any(mutant.load(name).sha != load(name).sha for name in COMMANDS), mutant.name


def each_of(mutants: list[Mutant]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("broken", mutants, ids=ids, indirect=True)


#: what a broken store answers with: wrong facts, or a script that fails; also if it does so on some runs only (its
#: answers may depend on the server's clock)
FOUND = (AssertionError, ValueError, TidegateError, Flaky)


@pytest.mark.slow
@each_of(COMMON)
def test_the_machine_finds(shared_server: Server, broken: Mutant) -> None:
    with pytest.raises(FOUND):
        run(shared_server, _HUNT)


@each_of(FORGETFUL)
def test_a_restart_finds(own_server: OwnServer, broken: Mutant) -> None:
    with pytest.raises(FOUND):
        forgetful_server(own_server)


@each_of(RARE)
def test_the_test_of_the_rule_finds(shared_server: Server, broken: Mutant) -> None:
    module, _, name = broken.test.partition(":")
    test = getattr(import_module(f"tests.lua.{module}"), name)
    rig = Ground(shared_server)()
    try:
        rig.worker()
        with pytest.raises(FOUND):
            test(rig)
    finally:
        rig.close()
        delete_fleet(rig.client, rig.settings.fleet.name)


def test_a_sound_store_passes_the_same_restart(own_server: OwnServer) -> None:
    forgetful_server(own_server)


def forgetful_server(own_server: OwnServer) -> None:
    """One life with a forgotten second, that touches every rule about it."""
    server = own_server(options={"appendonly": "yes"})
    rig = Rig(server.client(), server.url, settings("fleet"))
    try:
        rig.worker()
        rig.worker("w2")
        rig.put("given-back", "waits")
        old = rig.one()
        epoch = rig.store.snapshot().epoch
        mark = server.aof_mark()
        rig.end(old, OutcomeKind.RELEASE)
        new = rig.one(worker="w2")
        rig.put("done", idempotency_key="k", tenant="b")
        done = next(job for job in rig.take(2) if job.operation_id == "done")
        rig.end(done)
        rig.put("twice", tenant="c", known_operation=True)
        twice = next(job for job in rig.take(2, worker="w2") if job.operation_id == "twice")
        server.kill9_losing_since(mark)
        server.start()
        rig.client.connection_pool.disconnect()
        rig.put("twice", tenant="c", known_operation=True)
        assert rig.store.snapshot().epoch == epoch + 1
        assert rig.take(8) == ()
        assert rig.end(new) is SettleWord.HELD
        assert rig.store.reassert("w2", [new, twice], []) == ()
        released = Settled(old.head, outcome(old, OutcomeKind.RELEASE))
        assert rig.store.reassert("w1", [], [released, Settled(done.head, outcome(done))]) == ()
        assert rig.put("again", idempotency_key="k", tenant="b") == [Duplicate("done", State.SUCCEEDED)]
        assert rig.state("done") is State.SUCCEEDED
        rest = rig.take(8)
        assert [job.operation_id for job in rest] == ["waits"]
        assert rest[0].ref.fence > max(new.ref.fence, twice.ref.fence, done.ref.fence)
        assert [rig.end(old), rig.end(new), rig.end(twice)] == [
            SettleWord.STALE,
            SettleWord.OK,
            SettleWord.OK,
        ]
    finally:
        rig.close()
