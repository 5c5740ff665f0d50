"""`tidegate enqueue` and `tidegate status`: what they print and their exit codes (DESIGN §9)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.producer.shop import Shop

from tidegate.cli.main import main
from tidegate.domain.states import State
from tidegate.store import WorkerInfo
from tidegate.worker import identity


@pytest.fixture(autouse=True)
def _forget_apps(shop: Shop) -> Any:
    """Each command makes an app of its own, as in a process of its own."""
    before = {id(known.app) for known in identity.attached()}
    yield
    for known in identity.attached():
        if id(known.app) not in before:
            identity.detach(known.app)


def run(shop: Shop, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--config", str(shop.config)])


def test_enqueue_prints_what_the_store_did(shop: Shop) -> None:
    found = run(
        shop, "enqueue", "reports.fetch", "--args", "[1]", "--kwargs", '{"day": "2026-03-08"}', "--tenant", "acme",
        "--priority", "high", "--key", "k", "--delay", "10m", "--queue-timeout", "90", "--deadline", "2h", "--json",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    receipt = json.loads(found.stdout)
    assert (receipt["status"], receipt["queue"], receipt["pressure"]) == ("accepted", "default", "green")
    view = shop.store.job(receipt["operation_id"])
    assert view is not None
    assert (view.tenant, view.task, view.task_id, view.state) == (
        "acme", "reports.fetch", receipt["task_id"], State.DELAYED,
    )  # fmt: skip
    assert shop.envelope(receipt["operation_id"])["body"].startswith('[[1],{"day":"2026-03-08"},')
    again = run(
        shop,
        "enqueue",
        "reports.fetch",
        "--args",
        "[1]",
        "--kwargs",
        '{"day": "2026-03-08"}',
        "--tenant",
        "acme",
        "--key",
        "k",
    )
    assert again.exit_code == 0
    assert again.stdout.startswith(f"duplicate  operation {receipt['operation_id']}")


def test_enqueue_for_people(shop: Shop) -> None:
    found = run(shop, "enqueue", "t", "--operation-id", "order-7")
    assert found.stdout.splitlines()[0].startswith("accepted  operation order-7  task ")
    assert found.stdout.splitlines()[1] == "queue default: position 1, pressure green"


WRONG: list[tuple[list[str], int, str]] = [
    (["t", "--args", "{}"], 2, "expected a JSON array, got {}"),
    (["t", "--args", "[1"], 2, "not JSON"),
    (["t", "--kwargs", "[]"], 2, "expected a JSON object, got []"),
    (["t", "--args", "[NaN]"], 2, "args[0]: the number nan"),
    (["t", "--tenant", ""], 2, "tenant: empty"),
    (["t", "--priority", "highest"], 2, "one of low, normal, high, urgent"),
    (["t", "--priority", "17"], 2, "one of low, normal, high, urgent"),
    (["t", "--delay", "soon"], 2, "delay: 'soon'"),
    (["t", "--deadline", "2026-03-08T09:00:00"], 2, "which has no zone"),
    (["t", "--nonsense"], 2, "No such option"),
    ([], 2, "Missing argument 'TASK'"),
    (["t", "--queue", "smal"], 1, "did you mean 'small'?"),
    (["t", "--kwargs", json.dumps({"x": "y" * 2**20})], 1, "(fleet.max_body)"),
]


@pytest.mark.parametrize(("words", "code", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_what_is_wrong_has_its_exit_code(shop: Shop, words: list[str], code: int, text: str) -> None:
    found = run(shop, "enqueue", *words)
    assert (found.exit_code, text in found.stderr) == (code, True), found.output
    assert shop.counts().depth == 0


def test_refusals_exit_with_1(shop: Shop) -> None:
    for _ in range(3):
        run(shop, "enqueue", "t", "--queue", "small")
    full = run(shop, "enqueue", "t", "--queue", "small", "--json")
    assert full.exit_code == 1
    said = json.loads(full.stdout)
    assert (said["error"], said["scope"], said["depth"], said["limit"]) == ("full", "queue:small", 3, 3)
    assert said["retry_after"] > 0
    run(shop, "enqueue", "t", "--key", "k", "--args", "[1]")
    assert run(shop, "enqueue", "t", "--key", "k", "--args", "[2]").exit_code == 1


@pytest.mark.parametrize("command", [["enqueue", "t"], ["status"]])
def test_store_and_settings_have_their_exit_codes(shop: Shop, command: list[str]) -> None:
    shop.config.write_text('[broker]\nurl = "redis://127.0.0.1:1/0"\n')
    away = run(shop, *command, "--json")
    assert (away.exit_code, json.loads(away.stdout)["error"]) == (3, "store_unavailable")
    shop.config.write_text("[broker]\nurl = 7\n")
    assert run(shop, *command).exit_code == 4


def test_status(shop: Shop) -> None:
    shop.store.register(WorkerInfo("w1", "host", 42, ("default",), 2, "1.0"))
    for _ in range(2):
        run(shop, "enqueue", "t", "--queue", "small", "--delay", "1h")
    run(shop, "enqueue", "t")
    found = json.loads(run(shop, "status", "--json").stdout)
    assert found["fleet"] == shop.settings.fleet.name
    small = found["queues"]["small"]
    names = ("depth", "limit", "waiting", "delayed", "running", "failed", "retry_waiting", "dead")
    assert {name: small[name] for name in names} == {
        "depth": 2, "limit": 3, "waiting": 0, "delayed": 2, "running": 0, "failed": 0, "retry_waiting": 0, "dead": 0,
    }  # fmt: skip
    assert found["queues"]["default"]["oldest_age"] >= 0
    assert found["workers"] == [
        {"id": "w1", "hostname": "host", "pid": 42, "queues": ["default"], "concurrency": 2, "release": "1.0"}
    ]
    assert found["store"]["memory_used"] > 0
    shown = run(shop, "status").stdout.splitlines()
    assert shown[0].split() == [
        "queue", "depth", "limit", "waiting", "delayed", "running", "failed", "retrying", "dead", "oldest", "pressure",
    ]  # fmt: skip
    assert any(line.startswith("small ") for line in shown)
    assert any(line.startswith("worker w1  host pid 42  2 slots  default") for line in shown)
    assert shown[-1].startswith("store Valkey ")


def test_the_program_itself(shop: Shop) -> None:
    """Through the console script's entry point, in a process of its own."""
    code = "from tidegate.cli.main import main; main()"
    argv = [sys.executable, "-c", code, "enqueue", "t", "--queue", "nowhere", "--config", str(shop.config)]
    found = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("queue 'nowhere' is not declared")
