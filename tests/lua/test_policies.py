"""register and policies: what the code of workers says about their tasks, and who asks for it again."""

from __future__ import annotations

from tests.lua.rig import Rig

from tidegate.domain.backoff import Backoff
from tidegate.retry import Policies
from tidegate.store import WorkerInfo

WORKER = WorkerInfo("w", "host", 1, ("default",), 4)


def test_only_what_has_changed_is_told(rig: Rig) -> None:
    before, none = rig.store.policies()
    assert none == {}
    rig.store.register(WORKER, {"a b": '{"retry": {"max_retries": 1}}', "silent": ""})
    version, found = rig.store.policies(before)
    assert found == {"a b": '{"retry": {"max_retries": 1}}'}
    assert rig.store.policies(version) == (version, {})
    rig.store.register(WORKER, {"a b": '{"retry": {"max_retries": 1}}'})
    assert rig.store.policies(version) == (version, {})


def test_the_latest_worker_is_right(rig: Rig) -> None:
    rig.store.register(WORKER, {"a": "{}1", "b": "{}1"})
    rig.store.register(WORKER, {"a": "{}2", "b": ""})
    assert rig.store.policies()[1] == {"a": "{}2"}


def test_a_worker_that_only_announces_itself_again_takes_nothing_back(rig: Rig) -> None:
    rig.store.register(WORKER, {"a": "{}"})
    rig.store.register(WORKER)
    assert rig.store.policies()[1] == {"a": "{}"}


def test_the_authority_hears_of_it_within_a_second(rig: Rig) -> None:
    now = 0.0
    policies = Policies(rig.store, rig.settings, lambda: now)
    assert policies("a").max_retries == 3
    rig.store.register(WORKER, {"a": '{"retry": {"kind": "fixed", "interval": "8s", "max_retries": 1}}'})
    assert policies("a").max_retries == 3
    now = 1.0
    assert (policies("a").max_retries, policies("a").kind, policies("a").interval) == (1, Backoff.FIXED, 8.0)
    assert policies("other").max_retries == 3


def test_what_nobody_can_read_leaves_the_defaults(rig: Rig) -> None:
    rig.store.register(WORKER, {"a": "{", "b": '{"future": 1}', "c": '{"retry": {"max_retries": 1}}'})
    policies = Policies(rig.store, rig.settings)
    assert [policies(name).max_retries for name in "abc"] == [3, 3, 1]
