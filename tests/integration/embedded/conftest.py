"""Data directories for embedded servers: short paths (a socket's is limited), and no server left behind."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.harness import guard
from tests.harness.procfs import working_in

from tidegate.embedded import stop

NewDirectory = Callable[..., Path]


@pytest.fixture
def new_directory(_no_leftovers: None) -> Iterator[NewDirectory]:
    """Makes paths of data directories that do not exist yet."""
    made: list[Path] = []

    def make(below: str = "data") -> Path:
        root = Path(tempfile.mkdtemp(prefix="tg-"))
        guard.register_directory(root)
        made.append(root)
        return root / below

    yield make
    for root in made:
        for directory in root.rglob("server.lock"):
            stop(directory.parent)
        assert working_in(root) == []
        shutil.rmtree(root)


@pytest.fixture
def data_dir(new_directory: NewDirectory) -> Path:
    return new_directory()
