"""Every command that the README and the guides name exists, with the options they give it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tidegate.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("guide-*.md"))]
#: `tidegate X …` in running text, and `$ tidegate X …` in a console block
_CODE = re.compile(r"`tidegate ([^`\n]+)`|^\$ tidegate ([^#\n]+)", re.MULTILINE)


def lines() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for match in _CODE.finditer(page.read_text(encoding="utf-8")):
            found.append((page.name, (match[1] or match[2]).strip()))
    return sorted(set(found))


def command(words: list[str]) -> tuple[click.Command, list[str], list[str]]:
    """The command that the words lead to, its path, and what is left of them."""
    found: click.Command = main
    path: list[str] = []
    with click.Context(main) as context:
        while isinstance(found, click.Group) and words and not words[0].startswith("-"):
            inner = found.get_command(context, words[0])
            assert inner is not None, f"tidegate {' '.join([*path, words[0]])} does not exist"
            found, path, words = inner, [*path, words[0]], words[1:]
    return found, path, words


def test_the_pages_name_commands() -> None:
    assert len(lines()) > 10


@pytest.mark.parametrize(("page", "line"), lines())
def test_a_command_of_the_pages(page: str, line: str) -> None:
    found, path, rest = command(shlex.split(line))
    options = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in options]
    assert unknown == [], f"{page}: tidegate {' '.join(path)} has no option {unknown}"
    assert CliRunner().invoke(main, [*path, "--help"]).exit_code == 0
