"""The command lines of the parts."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

from tidegate.config import Settings
from tidegate.supervisor.part import parts_of


def test_every_part_reads_the_same_file_and_ends_with_us() -> None:
    settings = dataclasses.replace(Settings(), source=Path("/srv/a b/tidegate.toml"))
    found = parts_of(settings, 2, 1, True, "debug")
    assert [part.name for part in found] == ["worker-1", "worker-2", "beat-1", "exporter"]
    assert found[0].command() == [
        sys.executable, "-P", "-m", "tidegate", "--ends-with", str(os.getpid()),
        "worker", "--config", "/srv/a b/tidegate.toml", "--loglevel", "debug", "--hostname", "worker-1@%h",
    ]  # fmt: skip
    assert all(part.words[1:3] == ("--config", "/srv/a b/tidegate.toml") for part in found)


def test_without_a_file_they_look_where_we_looked() -> None:
    found = parts_of(Settings(), 1, 1, False, "info")
    assert [part.words for part in found] == [
        ("worker", "--loglevel", "info", "--hostname", "worker-1@%h"),
        ("beat", "--loglevel", "info"),
    ]
