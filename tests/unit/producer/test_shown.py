"""The short cut for `argsrepr` gives what Celery's own function gives."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.utils.saferepr import saferepr
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tidegate.worker.identity import attached
from tidegate.worker.shown import shown

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS | st.text(st.characters(codec="ascii"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)
ARGUMENTS = st.lists(VALUES, max_size=3).map(tuple) | st.dictionaries(st.text(max_size=6), VALUES, max_size=3)


@given(value=ARGUMENTS)
@hypothesis_settings(max_examples=500)
def test_equals_saferepr_wherever_it_answers(value: Any) -> None:
    text = shown(value)
    assert text is None or text == saferepr(value, 1024, maxlevels=3)


def test_answers_for_ordinary_arguments() -> None:
    assert shown({"day": "2026-03-08", "ids": [1, 2]}) == "{'day': '2026-03-08', 'ids': [1, 2]}"
    assert shown(()) == "()"


def test_leaves_long_deep_and_odd_ones_to_celery() -> None:
    for value in ["x" * 2000, [[[[1]]]], "\n", 'it\'s "odd"']:
        assert shown((value,)) is None


def test_an_app_with_another_setting_is_left_to_celery(app: Celery) -> None:
    app.conf.task_repr_maxlevels = 1
    assert not attached()[-1].shows
