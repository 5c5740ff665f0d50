"""A type checker sees through `enqueue`: arguments by the task's own signature, results by its return type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.processes import ROOT

PROLOGUE = """
from typing import Any, Generic, ParamSpec, TypeVar
from tidegate import Receipt, call, enqueue, enqueue_many

P = ParamSpec("P")
R = TypeVar("R")

class Task(Generic[P, R]):
    '''A task object with a signature, as type stubs of Celery declare it.'''
    name: str
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: raise NotImplementedError

fetch: Task[[str, int], dict[str, int]]
"""

RIGHT = """
one: Receipt[dict[str, int]] = enqueue(call(fetch, "2026-03-08", 3), tenant="acme", priority="high")
two: Receipt[dict[str, int]] = enqueue(fetch, args=("2026-03-08", 3), idempotency_key=["a", 1])
three: Receipt[Any] = enqueue("reports.fetch", kwargs={"day": "2026-03-08"}, delay="10m")
four: int = one.result(timeout=3)["rows"]
enqueue_many([call(fetch, "x", 1).using(tenant="acme"), call("by.name", anything=1)], queue="default")
enqueue(call("by.name", 1, 2, x=3))
"""

#: a wrong line, and what mypy says about it
WRONG = {
    'enqueue(call(fetch, 3, "x"))': "call-overload",
    'enqueue(call(fetch, "x"))': "call-overload",
    'enqueue(call(fetch, "x", 1, 2))': "call-overload",
    'enqueue(call(fetch, "x", rows=1))': "call-arg",
    'x1: str = enqueue(call(fetch, "x", 1)).result()': "assignment",
    'x2: str = enqueue(fetch, args=("x", 1)).result()': "assignment",
    "enqueue(fetch, tenant=7)": "call-overload",
    'enqueue("t", tenent="acme")': "call-overload",
    'enqueue("t", deadline=b"x")': "call-overload",
    "enqueue(7)": "call-overload",
    'enqueue_many([call(fetch, "x", 1)], tenant=7)': "arg-type",
    "enqueue_many(7)": "arg-type",
}


@pytest.mark.slow
def test_mypy_checks_what_is_sent(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(PROLOGUE + RIGHT + "\n".join(WRONG))
    argv = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path),
        str(snippet),
    ]
    found = subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd=ROOT, env={"MYPYPATH": "app", "PATH": ""}
    )
    start = (PROLOGUE + RIGHT).count("\n") + 1
    errors: dict[int, str] = {}
    for line in found.stdout.splitlines():
        place, _, text = line.partition(" error: ")
        if text and place.startswith(str(snippet)):
            errors[int(place.split(":")[1]) - start] = text[text.rindex("[") + 1 : -1]
    assert errors == dict(enumerate(WRONG.values())), found.stdout + found.stderr
