"""The loader of scripts: includes once, in order, named by content."""

from __future__ import annotations

import hashlib

import pytest

from tidegate.store.script import COMMANDS, all_scripts, load


@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_starts_with_its_shebang_and_holds_each_library_once(name: str) -> None:
    source = load(name).source
    assert source.startswith("#!lua")
    assert source.count("#!lua") == 1
    libraries = [line for line in source.splitlines() if line.startswith("-- needs: ")]
    assert len(libraries) == len(set(libraries)) or source.count("local lib = {}") <= 1


def test_what_a_library_needs_comes_before_it() -> None:
    source = load("claim").source
    places = [
        source.index(f"\n-- {lib}: ")
        for lib in ("base", "epoch", "job", "turn", "lanes", "line", "finish", "attempt")
    ]
    assert places == sorted(places)


def test_the_name_is_the_hash_that_the_server_computes() -> None:
    one = load("settle")
    assert one.sha == hashlib.sha1(one.source.encode(), usedforsecurity=False).hexdigest()
    assert len({each.sha for each in all_scripts().values()}) == len(COMMANDS)


def test_a_mutation_must_hit() -> None:
    assert load("claim", ("j.n + 1", "j.n + 2")).sha != load("claim").sha
    with pytest.raises(ValueError, match="nothing to mutate"):
        load("claim", ("no such text", ""))
