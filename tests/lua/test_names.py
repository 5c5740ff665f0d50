"""Names are any text: braces, colons, quotes, line ends, emoji do no harm anywhere in the store."""

from __future__ import annotations

import pytest
from tests.lua.rig import Rig

from tidegate.domain.job import NewJob, OutcomeKind
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Accepted, Duplicate, Full

NAMES = [
    "a b",
    "a:b",
    "{a}",
    "}{",
    "{fleet}:job:1",
    'it\'s "quoted" `so` \\ too',
    "line\nbreak\r\n\ttab",
    "nul\0nul",
    "-",
    "*",
    "?[a-z]",
    "~tenant",
    "!group",
    "%s %d %n %25",
    "rl",
    "../../etc",
    "🦀" * 64,
    "é" * 128,
    "x" * 256,
    "\u202egnirts\u200b",
    "-1",
    "+inf",
    "1e309",
]


def as_everything(name: str, **fields: object) -> NewJob:
    values: dict[str, object] = {
        "queue": name,
        "tenant": name,
        "operation_id": name,
        "step": name,
        "task": name,
        "task_id": name,
        "resources": (f"key:{name}", name),
        "idempotency_key": name,
        "envelope": name.encode(),
        **fields,
    }
    return NewJob(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_one_name_for_everything(rig: Rig, name: str) -> None:
    (verdict,) = rig.store.enqueue([as_everything(name)])
    assert isinstance(verdict, Accepted)
    assert verdict.operation_id == name
    assert rig.store.enqueue([as_everything(name)]) == [Duplicate(name, State.WAITING)]
    (job,) = rig.take(4, queues=(name,))
    assert (job.queue, job.tenant, job.operation_id, job.step) == (name, name, name, name)
    assert (job.task, job.task_id, job.envelope) == (name, name, name.encode())
    assert rig.take(4, queues=(name,)) == ()
    rig.end(job, OutcomeKind.RELEASE)
    (job,) = rig.take(4, queues=(name,))
    rig.end(job, OutcomeKind.FAILED, Reason.ERROR)
    view = rig.store.job(name, name)
    assert view
    assert (view.state, view.queue, view.tenant) == (State.FAILED, name, name)
    assert rig.store.snapshot().queues[name].failed == 1


def test_all_at_once_and_each_finds_its_own(rig: Rig) -> None:
    assert all(isinstance(v, Accepted) for v in rig.store.enqueue([as_everything(name) for name in NAMES]))
    for name in NAMES:
        (job,) = rig.take(4, queues=(name,))
        assert job.operation_id == name
        rig.end(job)
    assert rig.dump().jobs == {}


def test_tenants_with_awkward_names_take_turns(rig: Rig) -> None:
    for name in NAMES:
        rig.store.enqueue(
            [
                as_everything(name, queue="default", operation_id=f"{name}{n}", idempotency_key=None)
                for n in (1, 2)
            ]
        )
    served = [job.tenant for _ in range(2) for job in (*rig.take(16), *rig.take(len(NAMES) - 16))]
    assert sorted(served[: len(NAMES)]) == sorted(served[len(NAMES) :]) == sorted(NAMES)


def test_awkward_limits_reach_their_tenant(rig: Rig) -> None:
    rig.configure(["tenant:%7Ba%7D", "1 -1 0 1 0 1 0 0 0"])
    first, second = rig.put("", "", tenant="{a}")
    assert isinstance(first, Accepted)
    assert isinstance(second, Full)
    assert second.scope == "tenant:{a}"


def test_a_worker_may_have_any_name(rig: Rig) -> None:
    name = "w {}: \n'\""
    rig.worker(name, *NAMES)
    rig.put("op")
    reply = rig.claim(worker=name)
    assert reply.known
    assert reply.jobs
    found = {worker.worker_id: worker.queues for worker in rig.store.snapshot().workers}
    assert found[name] == tuple(NAMES)
