"""The scripts do what the reference model says, whatever happens in whatever order."""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import run_state_machine_as_test
from tests.harness.fixtures import delete_fleet
from tests.harness.server import Server
from tests.lua.rig import Rig, settings

from .machine import LEASE, machine_on


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


def run(server: Server, examples: int, steps: int) -> None:
    ground = Ground(server)
    how = hypothesis_settings(max_examples=examples, stateful_step_count=steps)
    try:
        run_state_machine_as_test(machine_on(ground), settings=how)
    finally:
        ground.clear()


def test_scripts_and_model_agree(shared_server: Server) -> None:
    run(shared_server, examples=100, steps=40)
