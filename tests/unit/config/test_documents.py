"""The settings that the documents show are read as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate.config import ConfigError, load

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "configuration.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: str, language: str, word: str | None = None) -> list[str]:
    return [text for kind, mark, text in BLOCK.findall(document) if (kind, mark or None) == (language, word)]


@pytest.mark.parametrize("name", ["README.md", "docs/configuration.md"])
def test_each_file_shown_is_without_fault_or_warning(name: str, tmp_path: Path) -> None:
    shown = blocks((ROOT / name).read_text(), "toml")
    assert shown
    for text in shown:
        path = tmp_path / "tidegate.toml"
        path.write_text(text)
        assert load(path, {}).warnings == ()


def test_the_message_shown_is_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = blocks(GUIDE, "toml", "broken")
    (session,) = blocks(GUIDE, "console")
    monkeypatch.chdir(tmp_path)
    Path("broken.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(Path("broken.toml"), {})
    assert session == f"$ tidegate config check --config broken.toml\n{caught.value}\n$ echo $?\n4\n"
