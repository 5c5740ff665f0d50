"""In which line of a TOML document each key stands. Pure.

`tomllib` tells no positions. This scanner follows only what decides where a key starts: table headers, keys, and
values that go on over several lines. It is given documents that `tomllib` has accepted, and never fails: what it does
not understand has no line.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter

Path = tuple[str, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")
_TOKEN = re.compile(
    r'''"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[\]{}]|\n''',
)


def key_lines(document: str) -> dict[Path, int]:
    """Path of each table and key → number of its line, counted from 1."""
    found: dict[Path, int] = {}
    arrays: Counter[Path] = Counter()
    table: Path = ()
    position, line = 0, 1
    document = document.replace("\r\n", "\n")
    while position < len(document):
        end = document.find("\n", position)
        end = len(document) if end < 0 else end
        text = document[position:end]
        if header := _HEADER.fullmatch(text):
            table = _path(header[2])
            if header[1] == "[[":
                arrays[table] += 1
                table = (*table, str(arrays[table] - 1))
            _note(found, table, line)
        elif assignment := _ASSIGNMENT.match(text):
            _note(found, table + _path(assignment[1]), line)
            end = _end_of_value(document, position + assignment.end())
        line += document.count("\n", position, end) + 1
        position = end + 1
    return found


def _note(found: dict[Path, int], path: Path, line: int) -> None:
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], line)


def _path(dotted: str) -> Path:
    """The parts of a dotted key, read by tomllib itself, so that quoting and escapes are right."""
    value: object = tomllib.loads(f"{dotted} = 0")
    parts: list[str] = []
    while isinstance(value, dict):
        ((key, value),) = value.items()
        parts.append(key)
    return tuple(parts)


def _end_of_value(document: str, position: int) -> int:
    """Where the line ends on which the value ends that starts at `position`."""
    depth = 0
    while token := _TOKEN.search(document, position):
        position = token.end()
        if token[0] in ('"""', "'''"):
            position = _end_of_block(document, position, token[0])
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and depth <= 0:
            return token.start()
    return len(document)


def _end_of_block(document: str, position: int, quotes: str) -> int:
    """The position behind the closing quotes of a block; up to two more of them may belong to its text."""
    escaped = r"\\." if quotes == '"""' else r"(?!)"
    closing = re.compile(rf"{escaped}|{quotes}{quotes[0]}{{0,2}}", re.DOTALL)
    while found := closing.search(document, position):
        position = found.end()
        if not found[0].startswith("\\"):
            return position
    return len(document)
