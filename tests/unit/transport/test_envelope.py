"""The stored form of a message loses nothing that a delivery needs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidegate.transport.envelope import slim, whole

values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3), st.just({}), st.just([None, None])
)
names = st.sampled_from(
    [
        "lang",
        "shadow",
        "eta",
        "retries",
        "timelimit",
        "root_id",
        "parent_id",
        "ignore_result",
        "stamps",
        "tidegate",
        "x",
    ]
)
messages = st.fixed_dictionaries(
    {
        "body": st.text(max_size=5),
        "headers": st.dictionaries(names, values).map(lambda more: {**more, "task": "t", "id": "i"}),
        "properties": st.dictionaries(
            st.sampled_from(["correlation_id", "priority", "delivery_mode", "reply_to", "y"]), values
        ),
    },
    optional={"content-type": st.text(max_size=3), "content-encoding": st.none()},
)


@given(messages)
def test_everything_that_was_said_comes_back(message: dict[str, Any]) -> None:
    stored = json.loads(json.dumps(slim(message)))
    got = whole(stored)
    for part in ("headers", "properties"):
        assert {name: got[part].get(name, "gone") for name in message[part]} == message[part]
    assert {**got, "headers": 0, "properties": 0}.items() >= {
        **message,
        "headers": 0,
        "properties": 0,
    }.items()


@given(messages)
def test_a_message_that_was_stored_whole_is_read_as_well(message: dict[str, Any]) -> None:
    assert whole(whole(dict(message))) == whole(dict(message))


def test_no_two_deliveries_share_what_celery_may_change() -> None:
    one, two = (whole({"body": "", "headers": {"task": "t", "id": "i"}}) for _ in range(2))
    assert one["headers"]["stamps"] is not two["headers"]["stamps"]


def test_what_is_none_of_ours_stays_as_it_is() -> None:
    for foreign in ({"headers": {}}, {"headers": 3}, {}, {"headers": {"task": "t"}}):
        assert whole(dict(foreign)) == foreign
