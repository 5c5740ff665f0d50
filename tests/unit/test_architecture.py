"""Rules that the code keeps and no import contract can see, read off the syntax trees of all files.

import-linter holds the layers (`make check`); here are clocks, sleeps, broad handlers, file sizes and the like.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"app": ROOT / "app" / "tidegate", "beat": ROOT / "beat" / "tidegate_beat"}

#: pure rooms: values and decisions only; the settings (but for `load`, which reads a file) are as pure
PURE = ("app/tidegate/domain", "beat/tidegate_beat/semantics", "app/tidegate/config", "tests/model")
IMPURE_MODULES = {
    "redis", "valkey", "kombu", "celery", "time", "random", "secrets", "os", "socket", "threading", "logging",
    "subprocess", "asyncio", "multiprocessing", "signal", "selectors",
}  # fmt: skip
READS_FILES = {"app/tidegate/config/load.py"}

CLOCKS = {
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "time.time",
    "time.time_ns",
    "time.monotonic",
}
CEILING = 400


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


CODE = files(*PACKAGES.values())
TESTS = files(ROOT / "tests")
PURE_CODE = [path for path in files(*(ROOT / room for room in PURE)) if named(path) not in READS_FILES]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of each import, at any depth of the file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each call."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def complaints(paths: list[Path], found: Iterator[tuple[Path, int, str]]) -> None:
    assert paths, "no file to look at: has a package moved?"
    text = [f"{named(path)}:{line}: {what}" for path, line, what in found]
    assert not text, "\n" + "\n".join(text)


def test_pure_code_imports_nothing_that_acts() -> None:
    complaints(
        PURE_CODE,
        (
            (path, line, f"imports {module}")
            for path in PURE_CODE
            for line, module in imports(path)
            if module.partition(".")[0] in IMPURE_MODULES
        ),
    )


def test_pure_code_reads_no_clock() -> None:
    complaints(
        PURE_CODE,
        (
            (path, line, f"calls {name}")
            for path in PURE_CODE
            for line, name in calls(path)
            if any(name == clock or name.endswith(f".{clock}") for clock in CLOCKS)
        ),
    )


def test_only_the_store_imports_redis() -> None:
    outside = [path for path in CODE if "app/tidegate/store/" not in path.as_posix()]
    complaints(
        outside,
        (
            (path, line, f"imports {module}")
            for path in outside
            for line, module in imports(path)
            if module.partition(".")[0] in {"redis", "valkey"}
        ),
    )


def test_the_fleet_never_imports_beat() -> None:
    fleet = files(PACKAGES["app"])
    complaints(
        fleet,
        (
            (path, line, f"imports {module}")
            for path in fleet
            for line, module in imports(path)
            if module.partition(".")[0] == "tidegate_beat"
        ),
    )


def test_imports_stand_at_the_top() -> None:
    """An import inside a function hides a cycle or a layer; a module's `__getattr__` (PEP 562) is lazy in the open."""
    complaints(
        CODE,
        (
            (path, node.lineno, f"import inside {outer.name}")
            for path in CODE
            for outer in ast.walk(tree(path))
            if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef) and outer.name != "__getattr__"
            for node in ast.walk(outer)
            if isinstance(node, ast.Import | ast.ImportFrom)
        ),
    )


def test_one_place_decides_about_retries() -> None:
    """No other file compares attempts with a maximum."""
    decider = ROOT / "app/tidegate/domain/decision.py"

    def compared() -> Iterator[tuple[Path, int, str]]:
        for path in files(ROOT / "app", ROOT / "beat"):
            for node in ast.walk(tree(path)):
                if path == decider or not isinstance(node, ast.Compare):
                    continue
                words = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}
                if found := words & {"max_retries", "max_crashes"}:
                    yield path, node.lineno, f"compares {', '.join(found)}"

    complaints([decider], compared())
    assert "max_retries" in decider.read_text("utf-8")


def test_tests_do_not_sleep() -> None:
    """`wait_until(predicate, why)` waits for a fact. What runs inside a task or a child process may take its time."""
    complaints(
        TESTS,
        (
            (path, line, f"calls {name}")
            for path in TESTS
            if path.name.startswith("test_") or path.name == "conftest.py"
            for line, name in calls(path)
            if name in {"sleep", "time.sleep", "asyncio.sleep", "gevent.sleep"}
        ),
    )


def test_tests_are_never_skipped() -> None:
    complaints(
        TESTS,
        (
            (path, node.lineno, ast.unparse(node))
            for path in TESTS
            if path != Path(__file__).resolve()
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Attribute)
            and node.attr in {"skip", "skipif", "xfail", "importorskip"}
            and ast.unparse(node.value) in {"pytest", "pytest.mark", "unittest"}
        ),
    )


def test_the_store_is_never_mocked() -> None:
    complaints(
        TESTS,
        (
            (path, line, f"imports {module}")
            for path in TESTS
            for line, module in imports(path)
            if module.partition(".")[0] in {"fakeredis", "mock"} or module == "unittest.mock"
        ),
    )


def test_no_file_is_past_the_ceiling() -> None:
    complaints(
        CODE,
        (
            (path, lines, f"is longer than {CEILING} lines")
            for path in [*CODE, *TESTS]
            if (lines := len(path.read_text(encoding="utf-8").splitlines())) > CEILING
        ),
    )


def test_each_file_says_what_it_is_and_defers_its_annotations() -> None:
    complaints(
        CODE,
        (
            (path, 1, what)
            for path in CODE
            for what, missing in (
                ("has no docstring", not ast.get_docstring(tree(path))),
                (
                    "lacks `from __future__ import annotations`",
                    "__future__" not in {module for _, module in imports(path)} and len(tree(path).body) > 1,
                ),
            )
            if missing
        ),
    )


@pytest.mark.parametrize("word", ["utils", "util", "common", "helpers", "helper", "manager", "misc"])
def test_no_room_without_a_purpose(word: str) -> None:
    assert not [named(path) for path in CODE if word in {path.stem, *path.relative_to(ROOT).parts}]


def test_each_marker_is_declared_with_its_target() -> None:
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    names = {marker.partition(":")[0] for marker in markers}
    makefile = (ROOT / "Makefile").read_text()
    assert names == {"slow", "redis", "faults", "bench", "long"}
    assert all(f"not {name}" in makefile for name in names)


def test_generated_files_are_in_sync() -> None:
    done = subprocess.run(
        [sys.executable, "tools/generate.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
