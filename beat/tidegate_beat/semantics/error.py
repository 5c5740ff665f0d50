"""The one error of the schedule semantics."""

from __future__ import annotations

from typing import ClassVar

from tidegate.domain.errors import TidegateError


class InvalidSchedule(TidegateError):
    """An expression, a zone, an interval or an instant is refused; nothing was scheduled.

    where: the part that is wrong (`minute field`, `timezone`, `anchor`); what: the fact; hint: what to write
    instead. The message is one line.
    """

    code: ClassVar[str] = "invalid_schedule"
    exit_code: ClassVar[int] = 4
    fields: ClassVar[tuple[str, ...]] = ("where", "what", "hint")

    def __init__(self, where: str, what: str, hint: str) -> None:
        self.where, self.what, self.hint = where, what, hint
        super().__init__(f"{where}: {what}; {hint}")


def shown(text: str, limit: int = 40) -> str:
    """`text` in quotes, on one line and short, as it may stand in a message."""
    return ascii(text if len(text) <= limit else text[:limit] + "...")
