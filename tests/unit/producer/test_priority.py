"""Words and integers for urgency."""

from __future__ import annotations

import pytest

from tidegate.domain.errors import InvalidJob
from tidegate.domain.job import Priority
from tidegate.domain.priority import from_integer, parse_priority, word_of


@pytest.mark.parametrize("word", ["low", "normal", "high", "urgent"])
def test_words(word: str) -> None:
    assert word_of(parse_priority(word, amqp=False)) == word


def test_zero_is_normal_either_way() -> None:
    assert {from_integer(0, amqp=False), from_integer(0, amqp=True)} == {Priority.NORMAL}


@pytest.mark.parametrize("number", range(1, 10))
def test_the_other_integers_are_below_normal_on_redis_and_above_it_on_amqp(number: int) -> None:
    assert parse_priority(number, amqp=False).value < Priority.NORMAL.value
    assert parse_priority(number, amqp=True).value > Priority.NORMAL.value


def test_higher_integers_are_never_less_urgent_on_amqp() -> None:
    served = [from_integer(number, amqp=True).value for number in range(10)]
    assert served == sorted(served)


def test_messages_of_others_are_clamped_as_kombu_does() -> None:
    assert from_integer(-3, amqp=True) is Priority.NORMAL
    assert from_integer(99, amqp=True) is Priority.URGENT


@pytest.mark.parametrize("value", ["High", "", 10, -1, True, 1.5, None, [1]])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidJob):
        parse_priority(value, amqp=False)
