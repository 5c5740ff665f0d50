"""Whose server it is, across supervisors that end politely and others that are killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.up.conftest import MakeStage

from tidegate import embedded
from tidegate.supervisor import AlreadyUp
from tidegate.supervisor.claim import Claim


def test_what_a_killed_supervisor_had_started_belongs_to_the_next_one(make_up: MakeStage) -> None:
    data_dir = make_up().settings.data_dir
    first = Claim(data_dir)
    assert first.started_store, "nobody had"
    embedded.ensure(data_dir)
    first.close()  # as the kernel does when it is killed
    second = Claim(data_dir)
    assert second.started_store, "left by the first"
    second.empty()
    second.close()
    third = Claim(data_dir)
    assert not third.started_store, "the polite end of the second has left it to others"
    third.close()


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    with pytest.raises(AlreadyUp, match=r"runs already in this folder \(pid \d+"):
        Claim(tmp_path)
    (tmp_path / "up.lock").write_text("")  # the instant before it has written its pid
    with pytest.raises(AlreadyUp, match="its pid is not written yet"):
        Claim(tmp_path)
    claim.close()
    Claim(tmp_path).close()
