"""docs/settings.md: every key with its default, what it may be, its variable and its meaning. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.config.environment import variables
from tidegate.config.fault import shown
from tidegate.config.field import Branch, Leaf, declarations
from tidegate.config.model import Settings
from tidegate.config.reader import Path
from tidegate.config.task import DEFAULT_TASK, TaskSettings

HEAD = """\
# Settings reference

Generated from the settings classes (`make generate`). How to use the file: [configuration](configuration.md).
*Checked only*: this release reads and checks the key but does not act on it yet; `tidegate config check` warns.
"""

TABLE = "\n| key | default | may be | meaning |\n| --- | --- | --- | --- |\n"


def as_markdown() -> str:
    """The whole page."""
    page = HEAD + "".join(_sections(Settings(), ()))
    rows = "".join(
        f"| `{variable}` | `{'.'.join(path)}` |\n"
        for variable, (path, _) in sorted(variables(Settings).items())
    )
    return f"{page}\n## Variables\n\n| variable | key |\n| --- | --- |\n{rows}"


def _sections(values: Any, path: Path) -> Iterator[str]:
    """One chapter per table below `values`, an object that holds the defaults."""
    for key, declared in declarations(type(values)).items():
        if isinstance(declared, Branch):
            here = (*path, key, "NAME") if declared.named else (*path, key)
            inner = _defaults(declared) if declared.named else getattr(values, key)
            rows = "".join(_rows(inner, declared.later)) + "".join(_placed(values, here[:-1]))
            later = " Checked only." if declared.later else ""
            yield f"\n## [{'.'.join(here)}]\n\n{declared.doc}{later}\n{TABLE + rows if rows else ''}"
            yield from _sections(inner, here)


def _defaults(declared: Branch) -> Any:
    return DEFAULT_TASK if declared.record is TaskSettings else declared.record()


def _rows(values: Any, said: bool) -> Iterator[str]:
    for key, declared in declarations(type(values)).items():
        if isinstance(declared, Leaf) and not declared.at:
            yield _row(key, declared, getattr(values, key), said)


def _placed(values: Any, table: Path) -> Iterator[str]:
    """Keys that stand in a table of named tables (`[queues] open`)."""
    for key, declared in declarations(type(values)).items():
        if isinstance(declared, Leaf) and declared.at and declared.at[:-1] == table:
            yield _row(f"{declared.at[-1]}` in `[{'.'.join(table)}]", declared, getattr(values, key), False)


def _row(key: str, leaf: Leaf, value: Any, said: bool) -> str:
    default = "" if value is None and leaf.unset else f"`{shown(leaf.kind.show(value))}`"
    later = "" if said or not leaf.later else " Checked only."
    cells = (f"`{key}`", default, leaf.kind.expected, leaf.doc + later)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
