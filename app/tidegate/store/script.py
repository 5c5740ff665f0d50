"""Lua scripts as files: includes, headers, content hashes.

A command file starts with `#!lua`, then a header of comments (needs, keys, args, edge, replies). `needs` names files
of lua/lib, which name their own; the loader puts each once before the command. The server knows a script by the hash
of its whole text, so two releases can share a server.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_ROOT = files("tidegate.store") / "lua"
_FIELD = re.compile(r"^-- (needs|keys|args|edge|replies):\s*(.*)$")
COMMANDS = [
    "answered",
    "audit",
    "claim",
    "clock",
    "configure",
    "dead",
    "deaths",
    "decide",
    "enqueue",
    "extend",
    "failures",
    "fire",
    "history",
    "init",
    "job",
    "policies",
    "promote",
    "reap",
    "reassert",
    "register",
    "release",
    "replay",
    "schedule",
    "settle",
    "snapshot",
    "unregister",
    "untold",
    "vitals",
]


@dataclass(frozen=True, slots=True)
class Script:
    """One command, ready to send."""

    name: str
    source: str
    sha: str
    function: str  #: its name in `library()`; empty for a mutated script, which is no part of it
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


def _beginning(libraries: Sequence[str]) -> list[str]:
    """The libraries. One of their variables is called ARGV, which hides the server's own from there on."""
    return ["local given = ARGV", *(_library(name) for name in libraries)]


def _prologue(libraries: Sequence[str], arguments: str) -> list[str]:
    """What every call of a command does first: `lib.begin`, and `lib.begin_X` of each library X that has one."""
    if not libraries:
        return []
    hooks = _hooks("begin", libraries)
    return [f"local gone = lib.begin(KEYS, {arguments})", "if gone then return gone end", *hooks]


def _hooks(when: str, libraries: Sequence[str]) -> list[str]:
    return [f"lib.{when}_{name}()" for name in libraries if f"function lib.{when}_{name}(" in _library(name)]


def _call(libraries: Sequence[str], arguments: str) -> list[str]:
    """A call of a command: the prologue, the command itself, and `lib.close_X` of each library X that has one."""
    call = f"command(KEYS, {arguments})"
    ends = _hooks("close", libraries)
    last = [f"local reply = {call}", *ends, "return reply"] if ends else [f"return {call}"]
    return [*_prologue(libraries, arguments), *last]


@dataclass(frozen=True, slots=True)
class Library:
    """All commands as functions of the server, for FUNCTION LOAD."""

    name: str
    source: str


@cache
def library() -> Library:
    """The same files as one library of functions, named by its content.

    A script makes its seventy closures anew at each call (a quarter of a claim's time, measured); functions keep them.
    """
    libraries: list[str] = []
    for name in COMMANDS:
        _needed(_command(name), libraries)
    body = "\n".join(["local given", *(_library(name) for name in libraries), *map(_function, COMMANDS)])
    name = "tidegate_" + hashlib.sha1(body.encode(), usedforsecurity=False).hexdigest()[:16]
    return Library(name, f"#!lua name={name}\n" + body.replace(_NAME, name))


_NAME = "LIBRARY_NAME"


def _function(name: str) -> str:
    shebang, _, text = _command(name).partition("\n")
    flags = ", ".join(f"'{flag}'" for flag in shebang.partition("flags=")[2].split(",") if flag)
    start = f"redis.register_function{{function_name = '{_NAME}_{name}', flags = {{{flags}}},"
    return "\n".join(
        [
            "do",
            *_as_function(text),
            f"{start} callback = function(KEYS, ARGV)",
            *_call(_needed(text, []), "ARGV"),
            "end}",
            "end",
        ]
    )


def _as_function(text: str) -> list[str]:
    return ["local function command(KEYS, ARGV)", text, "end"]


def _command(name: str) -> str:
    return (_ROOT / "commands" / f"{name}.lua").read_text("utf-8")


@cache
def load(name: str, mutation: tuple[str, str] | None = None) -> Script:
    """The script of a command. `mutation` replaces one piece of text, for tests that prove a rule matters."""
    command = _command(name)
    shebang, _, rest = command.partition("\n")
    header = _header(command)
    libraries = _needed(command, [])
    source = "\n".join([shebang, *_beginning(libraries), *_as_function(rest), *_call(libraries, "given")])
    if mutation:
        if mutation[0] not in source:
            raise ValueError(f"{name}: nothing to mutate: {mutation[0]!r}")
        source = source.replace(*mutation)
    return Script(
        name=name,
        source=source,
        sha=hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest(),
        function="" if mutation else f"{library().name}_{name}",
        edges=tuple(header.get("edge", ())),
        replies=" ".join(header.get("replies", ())),
    )


def all_scripts() -> Mapping[str, Script]:
    """Every command by name."""
    return MappingProxyType({name: load(name) for name in COMMANDS})
