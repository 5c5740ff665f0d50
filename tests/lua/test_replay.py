"""replay: dead letters go back to their lines, each death once, within the bounds of the door."""

from __future__ import annotations

import json

import pytest
from tests.lua.conftest import MakeRig
from tests.lua.rig import LEASE, UNLIMITED, Rig, limit, outcome
from tests.lua.truth import complaints

from tidegate.config import QueueSettings, TenantSettings
from tidegate.domain.decision import Dead
from tidegate.domain.job import Effect, JobView, OutcomeKind
from tidegate.domain.states import Reason, State
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.store import Death, Desk, Replayed, WorkerInfo


def die(rig: Rig, operation: str, **fields: object) -> Death:
    """A job of that operation that has run, failed and been given up."""
    rig.tick(1_000)
    (verdict,) = rig.put(operation, **fields)
    assert isinstance(verdict, Accepted)
    return fail(rig, operation)


def fail(rig: Rig, operation: str) -> Death:
    """Run the one job that waits, and give it up."""
    job = rig.one()
    assert job.operation_id == operation
    detail = json.dumps({"class": "ValueError", "message": "no", "traceback": "Traceback"})
    rig.store.settle([outcome(job, OutcomeKind.FAILED, Reason.ERROR, detail)], "w1")
    (failure,) = rig.store.failures()[1]
    rig.store.decide([(failure, Dead(Reason.MAX_RETRIES))])
    found = Desk(rig.store).death(operation)
    assert found is not None
    return found


def replay(rig: Rig, *deaths: Death, why: str = "mended") -> list[str]:
    answers = Desk(rig.store).replay(deaths, by="ann", reason=why, detail={"all": True})
    assert complaints(rig.dump()) == []
    return [answer.word for answer in answers]


def view(rig: Rig, operation: str) -> JobView:
    found = rig.store.job(operation)
    assert found is not None
    return found


def test_a_dead_letter_waits_again_with_all_its_attempts_before_it(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    rig.tick(5_000)
    assert replay(rig, death) == ["ok"]
    now = view(rig, "a")
    assert (now.state, now.charged, now.crashes, now.generation) == (State.WAITING, 0, 0, 1)
    assert (now.attempt, now.eligible_ms, now.created_ms) == (1, rig.now, rig.now)
    assert rig.store.dead_letters()[0] == 0
    assert rig.store.untold() == ()
    job = rig.one()
    assert (job.operation_id, job.attempt) == ("a", 2)
    rig.end(job)
    assert rig.state("a") is State.SUCCEEDED
    assert not [name for name in rig.dump() if name.startswith(("err:", "tries:", "job:"))]


def test_one_death_is_replayed_once(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    assert replay(rig, death, death) == ["ok", "gone"]
    assert replay(rig, death) == ["gone"]
    assert rig.store.snapshot().queues["default"].depth == 1


def test_one_that_has_died_anew_is_another_death(rig: Rig) -> None:
    rig.worker()
    first = die(rig, "a")
    replay(rig, first)
    rig.tick(1_000)
    second = fail(rig, "a")
    assert (first.generation, second.generation) == (0, 1)
    assert replay(rig, first) == ["changed"]
    assert [job.generation for job in rig.store.untold()] == [1]
    assert replay(rig, second) == ["ok"]


def test_the_windows_of_retries_begin_anew(rig: Rig) -> None:
    rig.worker()
    replay(rig, die(rig, "a"))
    rig.tick(100_000_000)
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.ERROR)
    (failure,) = rig.store.failures()[1]
    assert (failure.attempt.charged, failure.attempt.first_failed_ms) == (1, rig.now)


def test_a_lost_reply_is_asked_for_again_and_changes_nothing_twice(rig: Rig) -> None:
    rig.worker()
    deaths = [die(rig, name) for name in ("a", "b")]
    rig.lose_reply()
    assert replay(rig, *deaths) == ["ok", "ok"]
    assert rig.client.xlen(f"{rig.store.key_prefix}audit") == 1


def test_a_deadline_that_has_passed(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a", deadline_ms=rig.now + 10_000)
    rig.tick(10_000)
    assert replay(rig, death) == ["expired"]
    assert rig.state("a") is State.DEAD


def test_a_queue_timeout_counts_from_the_replay(rig: Rig) -> None:
    rig.put("a", queue_timeout_ms=500)
    rig.tick(500)
    rig.store.promote()
    found = Desk(rig.store).death("a")
    assert found is not None
    rig.tick(60_000)
    assert replay(rig, found) == ["ok"]
    rig.tick(499)
    rig.store.promote()
    assert rig.state("a") is State.WAITING
    rig.tick(1)
    rig.store.promote()
    assert rig.state("a") is State.DEAD


def test_its_key_lives_again_as_long_as_the_job(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a", idempotency_key="k")
    assert replay(rig, death) == ["ok"]
    assert isinstance(rig.put("b", idempotency_key="k")[0], Duplicate)


def test_a_key_that_is_another_operations_by_now(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a", idempotency_key="k")
    (key,) = (name for name in rig.dump() if name.startswith("key:"))
    rig.client.delete(f"{rig.store.key_prefix}{key}")  # its time was over
    rig.put("b", idempotency_key="k")
    answers = Desk(rig.store).replay([death], by="ann", reason="", detail={})
    assert answers == [Replayed("conflict")]


def test_no_replay_makes_a_queue_red(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=10)})
    rig.worker()
    deaths = [die(rig, f"op-{n}") for n in range(3)]
    rig.put(*(f"more-{n}" for n in range(7)))
    answers = Desk(rig.store).replay(deaths, by="ann", reason="", detail={})
    assert [answer.word for answer in answers] == ["ok", "pressure", "pressure"]
    assert (answers[1].scope, answers[1].retry_after) == ("queue:default", 1.0)
    assert rig.store.snapshot().queues["default"].depth == 8


def test_a_full_tenant(make: MakeRig) -> None:
    rig = make(
        tenants={"default": UNLIMITED, "t": TenantSettings(max_concurrency=None, rate=None, max_depth=1)}
    )
    rig.worker()
    deaths = [die(rig, name, tenant="t") for name in ("a", "b")]
    answers = Desk(rig.store).replay(deaths, by="ann", reason="", detail={})
    assert [(answer.word, answer.scope) for answer in answers] == [("ok", ""), ("full", "tenant:t")]


def test_a_closed_queue(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    rig.limits(queue=limit(closed=True))
    assert replay(rig, death) == ["closed"]


def test_every_try_is_kept_with_the_job(rig: Rig) -> None:
    rig.store.register(WorkerInfo("w1", "host", 1, ("default",), 4, "r-7"))
    replay(rig, die(rig, "a"))
    began = rig.now
    rig.one()
    rig.live(LEASE + 2_000)
    tries = view(rig, "a").tries
    assert [row.get("outcome") for row in tries] == ["error", None]  # never heard of: not charged, and no try
    first, again = tries
    assert (first["n"], first["worker"], first["host"], first["class"], first["message"]) == (
        1,
        "w1",
        "host",
        "ValueError",
        "no",
    )
    assert first["release"] == "r-7"
    assert first["ended"] >= first["started"]
    assert (again["by"], again["reason"], again["replayed"]) == ("ann", "mended", began)


def test_a_lost_worker_is_a_try(rig: Rig) -> None:
    rig.worker()
    rig.put("a")
    job = rig.one()
    rig.live(2_000, alive=[job])
    rig.live(LEASE + 2_000)
    (row,) = view(rig, "a").tries
    assert (row["outcome"], row["n"], row.get("worker")) == ("worker_lost", 1, None)
    rig.end(rig.one())
    assert not [name for name in rig.dump() if name.startswith("tries:")]


def test_the_latest_twenty_tries(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    for _ in range(12):
        replay(rig, death)
        rig.tick(1_000)
        death = fail(rig, "a")
    tries = view(rig, "a").tries
    assert len(tries) == 20
    assert tries[-1]["n"] == 13


def test_generations_are_counted_as_far_as_the_record_goes(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    name = f"{rig.store.key_prefix}job:{death.job_id}"
    rig.client.setrange(name, 1, bytes([126 * 2]))
    for generation in (126, 127, 127):
        found = Desk(rig.store).death("a")
        assert found is not None
        assert found.generation == generation
        assert replay(rig, found) == ["ok"]
        rig.tick(1_000)
        fail(rig, "a")


def test_an_effect_is_kept_beside_the_generation(rig: Rig) -> None:
    rig.worker()
    replay(rig, die(rig, "a", effect=Effect.AT_MOST_ONCE))
    assert rig.one().effect is Effect.AT_MOST_ONCE


def test_during_a_hold_nothing_is_replayed(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    rig.client.hset(f"{rig.store.key_prefix}meta", "hold", str(rig.now + 500))
    (answer,) = Desk(rig.store).replay([death], by="ann", reason="", detail={})
    assert answer == Replayed("held", retry_after=0.5)


def test_each_change_has_its_line_and_what_changed_nothing_has_none(rig: Rig) -> None:
    rig.worker()
    deaths = [die(rig, name) for name in ("a", "b")]
    replay(rig, *deaths, why="site mended")
    replay(rig, *deaths)
    (line,) = Desk(rig.store).audit()
    assert (line.by, line.command, line.reason, line.count, line.detail) == (
        "ann",
        "dlq replay",
        "site mended",
        2,
        {"all": True},
    )
    assert line.at_ms == rig.now


@pytest.mark.parametrize("page", [1, 2, 3, 7])
def test_looking_through_all_of_them_in_pages(rig: Rig, page: int) -> None:
    rig.worker()
    for number in range(3):
        rig.put(*(f"op-{number}-{n}" for n in range(2)), queue_timeout_ms=1, tenant=f"t {number}", task="x.y")
        rig.tick(1_000)
        rig.store.promote()
    found = list(Desk(rig.store).deaths(page=page))
    assert [one.operation_id for one in found] == [f"op-{n}-{k}" for n in range(3) for k in range(2)]
    assert (found[0].tenant, found[0].task, found[0].reason) == ("t 0", "x.y", "queue_timeout")
    late = list(Desk(rig.store).deaths(since_ms=found[2].died_ms, before_ms=found[4].died_ms, page=page))
    assert [one.operation_id for one in late] == ["op-1-0", "op-1-1"]


@pytest.mark.parametrize("page", [1, 2, 3])
def test_an_entry_whose_job_is_not_there_hides_no_other(rig: Rig, page: int) -> None:
    rig.put("a", "b", "c", queue_timeout_ms=1)
    rig.tick(1)
    rig.store.promote()
    missing = next(one for one in Desk(rig.store).deaths() if one.operation_id == "b")
    name = f"{rig.store.key_prefix}job:{missing.job_id}"
    rig.client.rename(name, f"{name}0")
    found = [one.operation_id for one in Desk(rig.store).deaths(page=page)]
    rig.client.rename(f"{name}0", name)
    assert found == ["a", "c"]


def test_deaths_and_answers_are_counted(rig: Rig) -> None:
    rig.worker()
    death = die(rig, "a")
    replay(rig, death, death)
    dump = rig.dump()
    assert dump["died"] == {"default max_retries": "1"}
    assert dump["replays"] == {"ok": "1", "gone": "1"}


def test_a_child_that_its_worker_reports_as_lost_is_a_crash(rig: Rig) -> None:
    rig.worker()
    rig.put("a")
    rig.end(rig.one(), OutcomeKind.FAILED, Reason.WORKER_LOST)
    (failure,) = rig.store.failures()[1]
    assert failure.attempt.crashes == 1
