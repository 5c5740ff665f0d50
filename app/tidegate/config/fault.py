"""What is wrong with the settings, all of it in one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.domain.errors import TidegateError

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    where: the key (`queues.default.max_depth`), or the variable that gave it; empty for the file as a whole;
    line: line in the file, None where there is none; what: expectation and finding, or the complaint;
    hint: what was probably meant, empty if nothing comes near.
    """

    where: str
    what: str
    hint: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = self.where + (
            f" (line {self.line})" if self.line and self.where else f"line {self.line}" if self.line else ""
        )
        meant = f"; did you mean {self.hint}?" if self.hint else ""
        return f"{place}: {self.what}{meant}" if place else f"{self.what}{meant}"

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {"where": self.where, "line": self.line, "what": self.what, "hint": self.hint}


class ConfigError(TidegateError):
    """The settings cannot be used. `faults` holds everything that was found, `source` the file or an empty string."""

    code = "config"
    exit_code = 4
    fields = ("source", "faults")

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        self.source, self.faults = source, faults
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(f"{source or 'settings'}: {count}{lines}")

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "error": self.code,
            "message": str(self),
            "source": self.source,
            "faults": [fault.as_dict() for fault in self.faults],
        }


def shown(raw: object) -> str:
    """A value as the file would write it, shortened."""
    if isinstance(raw, Mapping):
        return "a table"
    if isinstance(raw, list) and any(isinstance(item, Mapping) for item in raw):
        return "a list of tables"
    if isinstance(raw, str | int | bool | list):
        return shortened(json.dumps(raw, ensure_ascii=False, default=str))
    return shortened(str(raw))


def shortened(text: str) -> str:
    """At most 60 characters of it."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
