"""Lua scripts as files: includes, headers, content hashes.

A command file starts with `#!lua`, then a header of comments (needs, keys, args, edge, replies). `needs` names files
of lua/lib, which name their own; the loader puts each once before the command. The server knows a script by the hash
of its whole text, so two releases can share a server.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_ROOT = files("tidegate.store") / "lua"
_FIELD = re.compile(r"^-- (needs|keys|args|edge|replies):\s*(.*)$")
COMMANDS = [
    "claim",
    "clock",
    "configure",
    "enqueue",
    "extend",
    "init",
    "job",
    "promote",
    "reap",
    "reassert",
    "register",
    "release",
    "settle",
    "snapshot",
    "unregister",
]


@dataclass(frozen=True, slots=True)
class Script:
    """One command, ready to send."""

    name: str
    source: str
    sha: str
    edges: tuple[str, ...]
    replies: str


def _header(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith(("--", "#!")):
            break
        if match := _FIELD.match(line):
            found.setdefault(match[1], []).append(match[2])
    return found


def _library(name: str) -> str:
    return (_ROOT / "lib" / f"{name}.lua").read_text("utf-8")


def _needed(text: str, seen: list[str]) -> list[str]:
    for name in " ".join(_header(text).get("needs", ())).split():
        if name not in seen:
            _needed(_library(name), seen)
            seen.append(name)
    return seen


@cache
def load(name: str, mutation: tuple[str, str] | None = None) -> Script:
    """The script of a command. `mutation` replaces one piece of text, for tests that prove a rule matters."""
    command = (_ROOT / "commands" / f"{name}.lua").read_text("utf-8")
    shebang, _, rest = command.partition("\n")
    header = _header(command)
    source = "\n".join([shebang, *(_library(lib) for lib in _needed(command, [])), rest])
    if mutation:
        if mutation[0] not in source:
            raise ValueError(f"{name}: nothing to mutate: {mutation[0]!r}")
        source = source.replace(*mutation)
    return Script(
        name=name,
        source=source,
        sha=hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest(),
        edges=tuple(header.get("edge", ())),
        replies=" ".join(header.get("replies", ())),
    )


def all_scripts() -> Mapping[str, Script]:
    """Every command by name."""
    return MappingProxyType({name: load(name) for name in COMMANDS})
