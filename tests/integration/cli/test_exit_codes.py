"""Must: each error is one clear message with the documented exit code, nothing half-done, through real processes.

What only depends on arguments is in tests/integration/producer/test_command.py; here are the store and its state.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable

import pytest
from tests.integration.cli.conftest import TIMEOUT, Desk

ENQUEUE, STATUS, WORKER = ("enqueue", "t", "--key", "k"), ("status",), ("worker", "-P", "solo", "-c", "1")


def assert_said(ended: subprocess.CompletedProcess[str], code: int, text: str) -> None:
    """One message for people on stderr, and not a trace of where in the code it came from."""
    assert ended.returncode == code, (ended.stdout, ended.stderr)
    assert text in ended.stderr
    assert "Traceback" not in ended.stderr + ended.stdout


def evict(desk: Desk) -> None:
    desk.server.client().config_set("maxmemory-policy", "allkeys-lru")


def newer_schema(desk: Desk) -> None:
    assert desk.type(*STATUS).returncode == 0  # the fleet exists
    desk.server.client().hset(f"{desk.prefix}meta", "schema", 999)


REFUSED: list[tuple[Callable[[Desk], None], str]] = [
    (evict, "maxmemory-policy is allkeys-lru"),
    (newer_schema, "its key schema is 999, newer than"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("spoil", "text"), REFUSED, ids=["eviction", "schema"])
def test_a_store_that_must_not_be_used_is_4(desk: Desk, spoil: Callable[[Desk], None], text: str) -> None:
    spoil(desk)
    before = desk.keys()
    for command in (ENQUEUE, STATUS, WORKER):
        assert_said(desk.type(*command), 4, text)
    told = json.loads(desk.type(*ENQUEUE, "--json").stdout)
    assert told["error"] == "store_refused"
    assert text in told["message"]
    assert desk.keys() == before, "nothing half-done"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["frozen", "dead"])
def test_a_store_that_is_down_is_3_and_soon(desk: Desk, how: str) -> None:
    """Twice in a row; the time of a command that succeeds is what the process itself needs."""
    start = time.monotonic()
    assert desk.type(*STATUS).returncode == 0
    usual = time.monotonic() - start
    desk.server.pause() if how == "frozen" else desk.server.kill9()
    for _ in range(2):
        start = time.monotonic()
        ended = desk.type(*ENQUEUE, "--json")
        took = time.monotonic() - start
        assert_said(ended, 3, "cannot be reached")
        assert json.loads(ended.stdout)["error"] == "store_unavailable"
        assert took < 3 * usual + TIMEOUT + 2.0
    for command in (STATUS, WORKER):
        assert_said(desk.type(*command), 3, "cannot be reached")


@pytest.mark.slow
def test_done_and_refused(desk: Desk) -> None:
    assert desk.type(*ENQUEUE, "--args", "[1]").returncode == 0
    again = desk.type(*ENQUEUE, "--args", "[1]", "--json")
    assert (again.returncode, json.loads(again.stdout)["status"], again.stderr) == (0, "duplicate", "")
    conflict = desk.type(*ENQUEUE, "--args", "[2]", "--json")
    assert_said(conflict, 1, "different body")
    assert json.loads(conflict.stdout)["error"] == "conflict"
    full = desk.type("enqueue", "t", "--json")
    assert_said(full, 1, "is full (1 unfinished of 1 allowed)")
    assert json.loads(full.stdout)["error"] == "full"
    assert desk.jobs() == 1


@pytest.mark.slow
def test_full_memory_is_1_and_names_the_memory(desk: Desk) -> None:
    assert desk.type(*STATUS).returncode == 0
    client = desk.server.client()
    client.config_set("maxmemory", client.info("memory")["used_memory"] - 10_000)
    full = desk.type("enqueue", "t", "--json")
    assert_said(full, 1, "the store's memory is full")
    assert "max_depth" not in full.stderr, "which would change nothing"
    assert json.loads(full.stdout)["scope"] == "store"
    assert desk.jobs() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("enqueue", "t", "--args", "{}"),
        ("enqueue", "t", "--nonsense"),
        ("enqueue",),
        ("config", "check", "--nonsense"),
    ],
    ids=" ".join,
)
def test_usage_is_2_also_as_json(desk: Desk, words: tuple[str, ...]) -> None:
    plain, as_json = desk.type(*words), desk.type(*words, "--json")
    assert_said(plain, 2, "Error: ")
    assert plain.stdout == ""
    assert_said(as_json, 2, "Error: ")
    told = json.loads(as_json.stdout)
    assert told["error"] == "usage"
    assert told["message"] in as_json.stderr
    assert desk.keys() == 0


@pytest.mark.slow
def test_broken_settings_are_4_for_every_command(desk: Desk) -> None:
    (desk.directory / "tidegate.toml").write_text("[queues.default]\nmax_dept = 3\n")
    for command in (ENQUEUE, STATUS, WORKER, ("config", "check")):
        assert_said(desk.type(*command), 4, "max_dept")
    assert json.loads(desk.type(*ENQUEUE, "--json").stdout)["error"] == "config"
    assert not (desk.directory / ".tidegate").exists(), "no server was started for settings nobody can use"
