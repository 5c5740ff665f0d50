"""Where there is no bundled server, or no room for a socket."""

from __future__ import annotations

import pickle
import platform
from pathlib import Path

import pytest

from tidegate.domain.errors import TidegateError
from tidegate.embedded import EmbeddedError, ensure
from tidegate.embedded.binary import server_binary
from tidegate.embedded.place import MAX_SOCKET_PATH, can_hold_socket


def test_the_bundled_server_is_found() -> None:
    assert server_binary().name == "valkey-server"


@pytest.mark.parametrize(
    ("system", "machine"), [("Linux", "riscv64"), ("FreeBSD", "x86_64"), ("Windows", "AMD64")]
)
def test_a_platform_without_a_server_is_named_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, data_dir: Path, system: str, machine: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(EmbeddedError, match="no bundled server for") as caught:
        ensure(data_dir)
    assert "broker.url" in caught.value.next_step


def test_the_length_of_a_socket_path_is_counted_in_bytes(data_dir: Path) -> None:
    data_dir.mkdir()
    room = MAX_SOCKET_PATH - len(str(data_dir)) - 1
    assert can_hold_socket(data_dir / ("s" * room))
    assert not can_hold_socket(data_dir / ("s" * (room + 1)))
    assert not can_hold_socket(data_dir / ("é" * (room // 2 + 1)))
    assert list(data_dir.iterdir()) == []


def test_a_file_system_without_sockets_is_noticed() -> None:
    assert not can_hold_socket(Path("/proc/valkey.sock"))


def test_the_error_is_one_of_ours_and_survives_pickling() -> None:
    error = EmbeddedError("what happened", "/some/file", "do this", "line 1\nline 2")
    assert isinstance(error, TidegateError)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.as_dict() == error.as_dict()
    assert all(part in str(error) for part in ("what happened", "/some/file", "do this", "line 2"))
