"""Words and integers for urgency (DESIGN §11)."""

from __future__ import annotations

from tidegate.domain.errors import InvalidJob
from tidegate.domain.job import Priority

WORDS: dict[str, Priority] = {priority.name.lower(): priority for priority in Priority}

_EXPECTED = f"one of {', '.join(WORDS)}, or a whole number from 0 to 9"


def word_of(priority: Priority) -> str:
    """How users write it."""
    return priority.name.lower()


def from_integer(number: int, *, amqp: bool) -> Priority:
    """Celery's integer. 0 is normal. Otherwise kombu on Redis serves 0 first and 9 last, RabbitMQ 9 first; `amqp` says
    which of the two the code was written for. Numbers outside 0 to 9 count as the nearest one, as in kombu."""
    if number <= 0:
        return Priority.NORMAL
    if not amqp:
        return Priority.LOW
    return Priority.HIGH if number < 5 else Priority.URGENT


def parse_priority(value: object, *, amqp: bool, where: str = "priority") -> Priority:
    """A word, an integer or a Priority. Raises InvalidJob."""
    match value:
        case Priority():
            return value
        case str() if value in WORDS:
            return WORDS[value]
        case bool():
            pass
        case int() if 0 <= value <= 9:
            return from_integer(value, amqp=amqp)
    raise InvalidJob(repr(value), where, _EXPECTED)
