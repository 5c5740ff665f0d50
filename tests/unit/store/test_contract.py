"""The command files are a contract: headers, edges, replies and the words of the code say the same."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import DELAYED_START, EDGES, Event, State
from tidegate.store import script
from tidegate.store.script import COMMANDS, all_scripts, load

LUA = Path(script.__file__).parent / "lua"
FILES = sorted(LUA.rglob("*.lua"))
HEADER = ("needs", "keys", "args", "edge", "replies")

VERDICTS = {"accepted", "duplicate", "conflict", "full", "closed", "held"}
#: what stands in the lines of a reply, where the code has it as a list
INNER = {"enqueue": VERDICTS, "replay": {"held", "gone", "changed", "expired", "conflict", "pressure"}}


def header(name: str) -> dict[str, str]:
    """Fields of a command's header; a line that continues a field belongs to it."""
    found: dict[str, str] = {}
    last = ""
    for line in (LUA / "commands" / f"{name}.lua").read_text().splitlines()[1:]:
        if not line.startswith("--"):
            break
        if match := re.match(r"-- (needs|keys|args|edge|replies):\s+(.*)", line):
            last = match[1]
            found[last] = f"{found[last]}\n{match[2]}" if last in found else match[2]
        elif line.startswith("--          ") and last:
            found[last] += " " + line.removeprefix("--").strip()
        else:
            last = ""
    return found


def body(name: str) -> str:
    """A command's own code, without comments."""
    lines = (LUA / "commands" / f"{name}.lua").read_text().splitlines()
    return "\n".join(re.sub(r"\s*-- .*", "", line) for line in lines if not line.startswith("--"))


def test_every_command_file_is_a_command() -> None:
    assert sorted(path.stem for path in (LUA / "commands").iterdir()) == COMMANDS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_are_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_first_line_and_header(name: str) -> None:
    first, second, *_ = (LUA / "commands" / f"{name}.lua").read_text().splitlines()
    assert re.fullmatch(r"#!lua( flags=(allow-oom|no-writes))?", first)
    assert second.startswith(f"-- {name}: ")
    assert set(header(name)) >= set(HEADER) - ({"needs"} if name == "init" else set())
    assert header(name)["keys"] == "prefix"


@pytest.mark.parametrize("path", sorted((LUA / "lib").iterdir()), ids=lambda path: path.stem)
def test_libraries_say_what_they_are_and_what_they_need(path: Path) -> None:
    text = path.read_text()
    assert text.startswith(f"-- {path.stem}: ")
    assert path.stem == "base" or re.search(r"^-- needs: \w+", text, re.M)


def test_no_library_is_left_over() -> None:
    included = {
        lib for name in COMMANDS for lib in script._needed((LUA / "commands" / f"{name}.lua").read_text(), [])
    }
    assert {path.stem for path in (LUA / "lib").iterdir()} == included


def test_edges_in_the_headers_are_the_table() -> None:
    named = {edge for each in all_scripts().values() for edge in each.edges if edge != "none"}
    table = {_edge(start, event, end) for (start, event), end in EDGES.items()}
    assert named == table | {_edge(None, Event.ENQUEUE, DELAYED_START)}


def _edge(start: State | None, event: Event, end: State) -> str:
    return f"{start.name if start else 'none'} --{event.value}--> {end.name}"


def test_each_edge_is_named_by_the_command_that_walks_it() -> None:
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for name, each in all_scripts().items():
        for edge in each.edges:
            owners[edge].append(name)
    shared = {edge: names for edge, names in owners.items() if len(names) > 1 and edge != "none"}
    assert shared == {
        _edge(State.RUNNING, Event.RELEASE, State.WAITING): ["release", "settle"],
        _edge(None, Event.ENQUEUE, State.WAITING): ["enqueue", "fire"],  # both by lib/intake.lua
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_replies_in_the_header_are_the_words_of_the_code(name: str) -> None:
    code = set(re.findall(r"(?:return|answer\()\s*\{'(\w+)'", body(name)))
    code |= {"old"} if "replayed()" in body(name) else set()
    code |= {"lost"} if name != "init" else set()
    code -= INNER.get(name, set())
    assert outer_words(header(name)["replies"]) == code


def outer_words(replies: str) -> set[str]:
    """The words that stand outside of all brackets."""
    while (flat := re.sub(r"\([^()]*\)", "", replies)) != replies:
        replies = flat
    return set(re.findall(r"[a-z_]+", flat))


def test_inner_words_of_a_verdict_are_the_words_of_the_code() -> None:
    text = header("enqueue")["replies"]
    code = "".join((LUA / "lib" / f"{name}.lua").read_text() for name in ("intake", "pressure"))
    for word in VERDICTS:
        assert re.search(rf"\b{word}\b", text)
        assert f"{{'{word}'" in code
    assert set(re.findall(r"\{'(\w+)'", code)) - {"verdicts"} == VERDICTS


def test_inner_words_of_a_replay_are_the_words_of_the_code() -> None:
    text, code = header("replay")["replies"], body("replay")
    assert set(re.findall(r"\{'(\w+)'", code)) - {"replayed", "ok"} == INNER["replay"]
    for word in INNER["replay"] | {"ok", "full", "closed"}:
        assert f'"{word}' in text


def test_settle_words() -> None:
    code = (LUA / "lib" / "attempt.lua").read_text() + (LUA / "lib" / "riders.lua").read_text()
    assert set(re.findall(r"return '(\w+)'|and '(\w+)' or", code)) == {
        ("ok", ""),
        ("stale", ""),
        ("", "held"),
    }


def test_kinds_of_outcomes_are_known_to_the_scripts() -> None:
    code = (LUA / "lib" / "attempt.lua").read_text()
    for kind in OutcomeKind:
        assert f"kind == '{kind.value}'" in code or kind is OutcomeKind.FAILED


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_free_something_work_under_full_memory(name: str) -> None:
    """What may be refused is what takes something in; anything else would make a full store a trap."""
    first = load(name).source.splitlines()[0]
    assert ("flags=" not in first) == (name in ("enqueue", "claim", "fire"))


@pytest.mark.parametrize("name", [n for n in COMMANDS if "no-writes" in load(n).source.splitlines()[0]])
def test_commands_that_only_read_include_nothing_that_writes(name: str) -> None:
    """A server that came back is noticed by whoever changes something: a reader that tried would be refused."""
    needed = script._needed((LUA / "commands" / f"{name}.lua").read_text(), [])
    assert {"epoch", "book"} & set(needed) == set()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scripts_never_search_the_keyspace(path: Path) -> None:
    assert not re.search(r"'(KEYS|SCAN|HSCAN|SSCAN|ZSCAN|EVAL|SELECT|FLUSH\w+)'", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_key_has_the_prefix(path: Path) -> None:
    """`call('CMD', 'literal key')` would be a key outside of the fleet."""
    assert not re.search(r"call\('(?!(TIME|INFO)\b)[A-Z]+', '", path.read_text())
