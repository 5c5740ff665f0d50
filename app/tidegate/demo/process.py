"""Processes and their children, from /proc."""

from __future__ import annotations

from pathlib import Path


def family(pid: int) -> list[int]:
    """The process and all its descendants that are alive now."""
    found, ask = [], [pid]
    while ask:
        one = ask.pop()
        found.append(one)
        ask += [child for task in _tasks(one) for child in _children(task)]
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended meanwhile
        return []


def _children(task: Path) -> list[int]:
    try:
        return [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []
