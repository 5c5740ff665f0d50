"""Ids inside a canvas, on the messages that Celery itself makes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tidegate.transport.publish import captured
from tidegate.worker import canvas
from tidegate.worker.canvas import freeze_callbacks, frozen_ids, outermost_group
from tidegate.worker.context import context
from tidegate.worker.serializer import decode

Sent = list[tuple[str, Any]]


@pytest.fixture
def sent() -> Iterator[Sent]:
    """What the app has published; nothing is connected."""
    kept: Sent = []
    token = captured.set(kept)
    yield kept
    captured.reset(token)


@pytest.fixture(autouse=True)
def _tasks(app: Celery) -> None:
    app.conf.result_backend = "cache+memory://"
    app.backend_cls = "cache+memory://"
    app.task(nothing, name="t", shared=False)


def nothing(*args: Any) -> None:
    """The body of every step."""


def embedded(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = decode(message["body"])[2]
    return found


def identity(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = message["headers"]["tidegate"]
    return found


#: shapes of canvas: a leaf, or a shape of shapes
SHAPES = st.recursive(
    st.just("t"),
    lambda inner: st.tuples(
        st.sampled_from(["chain", "group", "chord"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


def build(app: Celery, shape: Any) -> Any:
    if shape == "t":
        return app.signature("t", args=(1,))
    kind, parts = shape
    steps = [build(app, part) for part in parts]
    if kind == "chord":
        return chord(steps, app.signature("t"), app=app)
    return chain(*steps, app=app) if kind == "chain" else group(*steps, app=app)


@given(shape=SHAPES)
@example(shape=("group", ["t", ("chain", ["t", ("group", ["t", "t"]), "t"])]))  # a chain that ends in a chord
@example(
    shape=("group", ["t", ("chain", [("group", ["t", "t"]), "t", "t"])])
)  # steps behind the body of a chord
@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_messages_of_one_canvas_share_one_operation(app: Celery, shape: Any) -> None:
    kept: Sent = []
    token = captured.set(kept)
    try:
        build(app, shape).apply_async()
    finally:
        captured.reset(token)
    operations = {identity(message)["operation_id"] for _, message in kept}
    assert len(operations) == 1
    steps = [identity(message).get("step", "") for _, message in kept]
    assert len(set(steps)) == len(kept), "each step has its own name"
    assert all(
        message["headers"]["id"] in identity(message).get("step", message["headers"]["id"])
        for _, message in kept
    )


def test_two_canvases_are_two_operations(app: Celery, sent: Sent) -> None:
    for _ in range(2):
        group(app.signature("t"), app.signature("t")).apply_async()
    assert len({identity(message)["operation_id"] for _, message in sent}) == 2


def test_a_context_gives_a_canvas_its_tenant_and_operation(app: Celery, sent: Sent) -> None:
    with context(tenant="acme", operation_id="op"):
        chord([app.signature("t"), app.signature("t")], app.signature("t")).apply_async()
    assert {(identity(message)["tenant"], identity(message)["operation_id"]) for _, message in sent} == {
        ("acme", "op")
    }


def test_later_steps_are_known_to_the_first(app: Celery, sent: Sent) -> None:
    t = app.signature("t")
    result = chain(t.clone(), group(t.clone(), t.clone()), t.clone(), app=app).apply_async(link=t.clone())
    ((_, message),) = sent
    ids = frozen_ids(SimpleNamespace(**dict.fromkeys(canvas.EMBEDDED) | embedded(message)))
    assert result.id in ids
    assert {child.id for child in result.parent.children} <= ids


def test_callbacks_get_ids_that_follow_from_their_parent(app: Celery, sent: Sent) -> None:
    t = app.signature("t")
    for _ in range(2):
        t.apply_async(
            task_id="parent",
            link=[t.clone(), chain(t, t, app=app), group(t, t, app=app), chord([t, t], t, app=app)],
            link_error=t.clone(),
        )
    first, second = (embedded(message) for _, message in sent)
    assert first == second
    ids = sorted(canvas._ids(first.values()))
    leaves = [i for i in ids if ids.count(i) == 1]
    assert (len(ids), len(leaves)) == (12, 10), "a chain has the id of its last step, as in Celery"


def test_the_callers_signatures_stay_as_they_are(app: Celery, sent: Sent) -> None:
    callback = app.signature("t")
    app.signature("t").apply_async(link=callback)
    assert "task_id" not in callback.options


def test_ids_that_are_there_stay() -> None:
    embed: dict[str, Any] = {"callbacks": [{"task": "t", "options": {"task_id": "mine"}}]}
    freeze_callbacks(embed, "parent")
    assert embed["callbacks"][0]["options"]["task_id"] == "mine"


@pytest.mark.parametrize(
    ("group_id", "embed", "outermost"),
    [
        (None, {}, None),
        ("g", {}, "g"),
        ("inner", {"chord": {"options": {"group_id": "outer"}}}, "outer"),
        ("a", {"chord": {"options": {"group_id": "b", "chord": {"options": {"group_id": "c"}}}}}, "c"),
        (None, {"chain": [{"options": {"group_id": "g"}}, {"options": {}}]}, "g"),
        (None, {"chain": [{"options": {"group_id": "i", "chord": {"options": {"group_id": "o"}}}}]}, "o"),
        ("g", {"chord": {"options": {}}}, "g"),
    ],
)
def test_outermost_group(group_id: str | None, embed: dict[str, Any], outermost: str | None) -> None:
    assert outermost_group(group_id, embed) == outermost
