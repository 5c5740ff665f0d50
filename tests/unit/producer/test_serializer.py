"""Our JSON: what goes in comes out unchanged, and what JSON cannot carry is refused with its place."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pickle
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery, chain, group
from celery.canvas import Signature
from hypothesis import example, given
from hypothesis import strategies as st
from kombu import serialization
from kombu.exceptions import ContentDisallowed, DecodeError, EncodeError

from tidegate.domain.errors import InvalidJob
from tidegate.worker import serializer
from tidegate.worker.serializer import CONTENT_TYPE, MAX_DEPTH, NAME, NotJson, decode, encode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
TYPED = {"__type__": "datetime", "__value__": "x"}


def body(args: tuple[Any, ...] = (), embed: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    return args, kwargs, embed or {}


@given(JSON)
@example(TYPED)
@example({"__type__": "bytes", "__value__": 7, "__json__": None})
@example(-0.0)
@example("\u2028\x00\U0001f600")
def test_round_trip_through_kombu(value: Any) -> None:
    content_type, encoding, text = serialization.dumps(value, serializer=NAME)
    found = serialization.loads(text, content_type, encoding, accept={CONTENT_TYPE})
    assert found == value
    assert repr(found) == repr(value)


@given(JSON)
def test_bytes_and_buffers_are_read_as_well(value: Any) -> None:
    raw = encode(value).encode()
    assert decode(raw) == decode(bytearray(raw)) == decode(memoryview(raw)) == value


class Colour(enum.Enum):
    RED = 1


LOOP: list[Any] = []
LOOP.append(LOOP)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


REFUSED: list[tuple[Any, str, str]] = [
    (body((1, dt.datetime(2026, 3, 8))), "args[1]", "datetime.datetime"),
    (body(items=[1, 2, 3, {"when": dt.date(2026, 3, 8)}]), "kwargs.items[3].when", "datetime.date"),
    (body(at=dt.time(9)), "kwargs.at", "datetime.time"),
    (body((uuid.UUID(int=0),)), "args[0]", "uuid.UUID"),
    (body((decimal.Decimal(1),)), "args[0]", "decimal.Decimal"),
    (body((b"x",)), "args[0]", "bytes"),
    (body(tags={1, 2}), "kwargs.tags", "set"),
    (body((Colour.RED,)), "args[0]", "Colour"),
    (body((object(),)), "args[0]", "object"),
    (body(**{"a b": {"c": [float("nan")]}}), 'kwargs["a b"].c[0]', "nan"),
    (body((float("-inf"),)), "args[0]", "-inf"),
    (body(a={1: "x"}), "kwargs.a", "the key 1 of type int"),
    (body(a={"b": {None: "x"}}), "kwargs.a.b", "the key None"),
    (body(a={True: "x"}), "kwargs.a", "the key True"),
    (body(("\ud800",)), "args[0]", "lone surrogate"),
    (body(a={"\udfff": 1}), "kwargs.a", "lone surrogate"),
    (body((10**5000,)), "args[0]", "more digits"),
    (body((LOOP,)), "args[0][0]", "contains itself"),
    (body((nested(MAX_DEPTH + 5),)), "args[0][0][0][0][0]…", "levels deep"),
    (body((nested(100_000),)), "args[0][0][0][0][0]…", "levels deep"),
    ({"result": dt.date(2026, 3, 8)}, "result", "datetime.date"),
    (dt.date(2026, 3, 8), "the value", "datetime.date"),
]


@pytest.mark.parametrize(("data", "where", "what"), REFUSED)
def test_what_json_cannot_carry_is_refused_with_its_place(data: Any, where: str, what: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        serialization.dumps(data, serializer=NAME)
    assert raised.value.where == where
    assert what in raised.value.what
    assert str(raised.value).startswith(f"{where}: ")
    assert raised.value.exit_code == 2


def test_the_refusal_is_what_celerys_tracer_understands() -> None:
    """A result that cannot be stored must become the task's failure, not an internal error."""
    with pytest.raises(EncodeError):
        encode(object())


def test_the_refusal_reaches_the_main_process() -> None:
    with pytest.raises(NotJson) as raised:
        encode(body((b"x",)))
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy)) == (NotJson, str(raised.value))


def test_deep_data_within_the_limit_passes() -> None:
    value = nested(MAX_DEPTH - 10)
    assert decode(encode(body((value,))))[0][0] == value


def test_tuples_become_lists_and_mapping_order_stays() -> None:
    assert decode(encode(body((1, (2, 3)), b=1, a=2))) == [[1, [2, 3]], {"b": 1, "a": 2}, {}]
    assert list(decode(encode({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "{", "", "[1,]", "\xff"])
def test_only_json_is_read(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)


def test_broken_text_is_a_decode_error_for_kombu() -> None:
    with pytest.raises(DecodeError):
        serialization.loads("[1,", CONTENT_TYPE, "utf-8", accept={CONTENT_TYPE})
    with pytest.raises(ContentDisallowed):
        serialization.loads("[]", CONTENT_TYPE, "utf-8", accept={"application/json"})


@pytest.mark.parametrize("name", ["eta", "expires"])
def test_times_of_a_signature_travel_in_the_form_that_celery_reads(name: str) -> None:
    when = dt.datetime(2026, 3, 8, 9, tzinfo=dt.UTC)
    step = {"task": "t", "args": [], "options": {name: when}}
    found = decode(encode(body(embed={"chain": [step]})))
    assert found[2]["chain"][0]["options"][name] == when.isoformat()


@pytest.mark.parametrize("make", [lambda when: {"args": [when]}, lambda when: {"kwargs": {"eta": when}}])
def test_times_elsewhere_in_a_signature_are_refused(make: Callable[[Any], dict[str, Any]]) -> None:
    step = {"task": "t", "options": {}, **make(dt.datetime(2026, 3, 8))}
    with pytest.raises(NotJson) as raised:
        encode(body(embed={"chain": [step]}))
    assert raised.value.where.startswith("chain[0].")
    with pytest.raises(NotJson):
        encode(body(options={"eta": dt.datetime(2026, 3, 8)}))


def test_canvas_objects_pass(app: Celery) -> None:
    one: Signature = app.signature("t", args=(1,))
    found = decode(encode(body((chain(one, group(one, one)),))))
    assert found[0][0]["task"] == "celery.chain"


def test_lazy_lists_are_not_taken_for_empty_ones(app: Celery) -> None:
    lazy = group(app.signature("t", args=(i,)) for i in range(3))
    found = decode(encode(body(embed={"chain": [lazy]})))
    assert len(found[2]["chain"][0]["kwargs"]["tasks"]) == 3


def test_registering_again_is_harmless() -> None:
    serializer.register()
    assert serialization.registry.name_to_type[NAME] == CONTENT_TYPE
