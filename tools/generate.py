"""Writes the generated files of this repository, or with --check says which of them are out of date (exit code 1).

A new generated file is one more line in FILES: its path, and the function without arguments that returns its text.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent

FILES = {
    "docs/settings.md": "tidegate.config.reference:as_markdown",
    "docs/tidegate.schema.json": "tidegate.config.schema:as_text",
    "docs/states.md": "states:as_markdown",
    "docs/store.md": "keys:as_markdown",
    "docs/metrics.md": "tidegate.telemetry.catalog:as_markdown",
}


def render(source: str) -> str:
    """The text that `module:function` gives."""
    module, _, function = source.partition(":")
    return cast("Callable[[], str]", getattr(import_module(module), function))()


def outdated() -> dict[Path, tuple[str, str]]:
    """Path of each file that differs → its text now, and as it should be."""
    found = {}
    for name, source in FILES.items():
        path = ROOT / name
        now, wanted = path.read_text(encoding="utf-8") if path.exists() else "", render(source)
        if now != wanted:
            found[path] = (now, wanted)
    return found


def main(arguments: list[str]) -> int:
    """Exit code: 0 all in sync or written, 1 out of date, 2 usage."""
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    changed = outdated()
    for path, (now, wanted) in changed.items():
        name = str(path.relative_to(ROOT))
        if arguments:
            print(f"{name} is out of date; `make generate` writes it again", file=sys.stderr)
            sys.stderr.writelines(
                difflib.unified_diff(now.splitlines(True), wanted.splitlines(True), name, "generated", n=1)
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if arguments and changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
