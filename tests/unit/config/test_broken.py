"""Broken settings files, each beside the exact message that a person must get for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config import ConfigError, inspect, load

BROKEN = Path(__file__).parent / "broken"
CASES = sorted(path.stem for path in BROKEN.glob("*.toml"))


def environment(case: str) -> dict[str, str]:
    """The variables of a case: `NN-name.env`, if there is one."""
    path = BROKEN / f"{case}.env"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("case", CASES)
def test_the_whole_message(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(ConfigError) as caught:
        load(Path(f"{case}.toml"), environment(case))
    assert str(caught.value) + "\n" == (BROKEN / f"{case}.txt").read_text()


def test_there_are_at_least_twenty() -> None:
    assert len(CASES) >= 20
    assert sorted(path.stem for path in BROKEN.glob("*.txt")) == CASES


def test_a_fault_knows_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    (fault, other) = inspect(Path("01-misspelt-key.toml"), {}).faults
    assert (fault.where, fault.line, fault.hint) == ("queues.default.max_dept", 2, "max_depth")
    assert other.line == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for environ, path in (({}, tmp_path / "no.toml"), ({"TIDEGATE_CONFIG": str(tmp_path / "no.toml")}, None)):
        with pytest.raises(ConfigError) as caught:
            load(path, environ)
        assert (
            str(caught.value)
            == f"{tmp_path / 'no.toml'}: 1 fault\n  cannot be read: No such file or directory"
        )


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {})


def test_a_bottomless_file_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(f"deep = {'[' * 100_000}{']' * 100_000}\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert caught.value.faults[0].what == "cannot be read: tables or lists are nested too deep"
