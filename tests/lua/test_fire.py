"""schedule, fire, history: a fire is decided once, with its job, its mark and the cursor in one step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lua.conftest import MakeRig
from tests.lua.rig import CLOCK, Rig, limit

from tidegate.config import QueueSettings
from tidegate.domain.fire import Cursor, Decided, Fate, Missed
from tidegate.domain.job import NewJob
from tidegate.domain.states import State
from tidegate.domain.verdict import Closed, Full
from tidegate.store import Astray, FireCall, Fired, FireReply, Standing, Timetable, Unfit

NAME = "daily {report}: 日"
DIGEST = "d1"


def adopt(rig: Rig, digest: str = DIGEST, name: str = NAME, known: int = 0) -> Cursor:
    _, (row,) = Timetable(rig.store).cursors([Standing(name, digest, known)], adopt=True)
    assert isinstance(row, Cursor)
    return row


def cursor(rig: Rig, digest: str = DIGEST, name: str = NAME) -> Cursor | Astray:
    _, (row,) = Timetable(rig.store).cursors([Standing(name, digest)])
    return row


def at(rig: Rig) -> int:
    row = cursor(rig)
    assert isinstance(row, Cursor)
    return row.at_ms


def job(time: int, **fields: Any) -> NewJob:
    known: dict[str, Any] = {"queue": "default", "tenant": "default", "envelope": b"{}"}
    return NewJob(operation_id=f"fire {time}", known_operation=True, **{**known, **fields})


def emit(time: int, **fields: Any) -> tuple[Decided, NewJob]:
    return Decided(time, Fate.EMITTED, time), job(time, **fields)


def missed(first: int, time: int, number: int, why: Missed = Missed.CATCH_UP) -> tuple[Decided, None]:
    return Decided(time, Fate.MISSED, first, number, why.value), None


def fire(
    rig: Rig, planned_from: int, *fires: tuple[Decided, NewJob | None], digest: str = DIGEST
) -> FireReply:
    (reply,) = Timetable(rig.store).fire([FireCall(NAME, digest, planned_from, fires)])
    return reply


def fates(rig: Rig) -> dict[str, int]:
    """How often each fate was counted."""
    return {field.rpartition(" ")[2]: int(n) for field, n in rig.dump().get("fates", {}).items()}


def marks(rig: Rig, most: int = 200) -> list[tuple[int, str]]:
    found = Timetable(rig.store).history([NAME], most)[NAME].marks
    return [(mark.decided.at_ms, mark.decided.fate.value) for mark in found]


# -- adopting


def test_a_schedule_seen_first_begins_now(rig: Rig) -> None:
    assert cursor(rig) is Astray.UNKNOWN
    assert adopt(rig) == Cursor(CLOCK)
    rig.tick(5_000)
    assert adopt(rig) == cursor(rig) == Cursor(CLOCK), "the second beat process changes nothing"


def test_an_edit_goes_on_from_now_and_the_older_process_is_told(rig: Rig) -> None:
    adopt(rig)
    rig.tick(5_000)
    assert adopt(rig, "d2") == Cursor(CLOCK + 5_000)
    assert cursor(rig) is Astray.EDITED
    assert fire(rig, CLOCK + 5_000, emit(CLOCK + 5_000), digest=DIGEST) is Unfit.STALE_CURSOR
    assert rig.dump().jobs == {}


def test_many_schedules_in_one_call(rig: Rig) -> None:
    asked = [Standing(f"s{n}", "d") for n in range(500)]
    now, rows = Timetable(rig.store).cursors(asked, adopt=True)
    assert (now, rows) == (CLOCK, [Cursor(CLOCK)] * 500)
    assert Timetable(rig.store).cursors([]) == (CLOCK, [])


def test_an_adoption_that_the_server_forgot_is_made_again_where_it_was(rig: Rig) -> None:
    rig.tick(10_000)
    assert adopt(rig, known=CLOCK + 7_000) == Cursor(CLOCK + 7_000)
    assert adopt(rig, name="other", known=CLOCK + 99_000) == Cursor(CLOCK + 10_000), "never later than now"


def test_one_who_only_remembers_does_not_undo_an_edit(rig: Rig) -> None:
    adopt(rig, "d2")
    _, (row,) = Timetable(rig.store).cursors([Standing(NAME, DIGEST, CLOCK - 5)], adopt=True)
    assert row is Astray.EDITED


# -- firing


def test_a_fire_is_a_job_a_mark_a_cursor_and_a_count(rig: Rig) -> None:
    adopt(rig)
    rig.tick(3_000)
    time = CLOCK + 1_000
    assert fire(rig, CLOCK, emit(time)) == Fired(time, (Fate.EMITTED,))
    assert cursor(rig) == Cursor(time)
    assert rig.one().operation_id == f"fire {time}"
    (mark,) = Timetable(rig.store).history([NAME])[NAME].marks
    assert (mark.decided, mark.lag_ms) == (Decided(time, Fate.EMITTED, time), 2_000)
    assert rig.dump()["fates"] == {"daily%20%7Breport%7D%3A%20%E6%97%A5 emitted": "1"}
    assert rig.dump()["meta"]["fire_lag"] == "2000"


def test_of_two_who_planned_the_same_one_is_late(rig: Rig) -> None:
    adopt(rig)
    rig.tick(3_000)
    fires = (emit(CLOCK + 1_000), emit(CLOCK + 2_000))
    assert isinstance(fire(rig, CLOCK, *fires), Fired)
    assert fire(rig, CLOCK, *fires) is Unfit.STALE_CURSOR
    assert len(rig.dump().jobs) == 2
    assert fates(rig) == {"emitted": 2}


def test_a_reply_that_was_lost_is_told_again(rig: Rig) -> None:
    adopt(rig)
    rig.tick(3_000)
    rig.lose_reply()
    assert fire(rig, CLOCK, emit(CLOCK + 1_000)) == Fired(CLOCK + 1_000, (Fate.EMITTED,))
    assert len(rig.dump().jobs) == 1


def test_the_future_is_refused(rig: Rig) -> None:
    adopt(rig)
    assert fire(rig, CLOCK, emit(CLOCK + 1)) is Unfit.FUTURE
    assert (at(rig), rig.dump().jobs) == (CLOCK, {})


def test_a_schedule_that_nobody_adopted_does_not_fire(rig: Rig) -> None:
    assert fire(rig, CLOCK, emit(CLOCK)) is Unfit.UNKNOWN


def test_nothing_fires_during_a_hold(rig: Rig) -> None:
    adopt(rig)
    rig.client.hset(f"{rig.store.key_prefix}meta", "hold", CLOCK + 2_000)
    rig.tick(1_000)
    assert fire(rig, CLOCK, emit(CLOCK + 1_000)) is Unfit.HELD
    rig.tick(1_000)
    assert isinstance(fire(rig, CLOCK, emit(CLOCK + 1_000)), Fired)


def test_a_time_at_or_before_the_cursor_never_fires_though_its_mark_is_gone(rig: Rig) -> None:
    adopt(rig)
    rig.tick(3_000)
    fire(rig, CLOCK, emit(CLOCK + 2_000))
    rig.client.delete(f"{rig.store.key_prefix}fires:daily%20%7Breport%7D%3A%20%E6%97%A5")
    rig.end(rig.one())
    rig.client.delete(f"{rig.store.key_prefix}hist")
    for time in (CLOCK + 1_000, CLOCK + 2_000):
        assert fire(rig, CLOCK + 2_000, emit(time)) == Fired(CLOCK + 2_000, (Fate.DUPLICATE,))
    assert (rig.dump().jobs, fates(rig)) == ({}, {"emitted": 1})


@pytest.mark.parametrize("ended", [False, True], ids=["runs", "has run"])
def test_a_job_that_the_fleet_knows_makes_a_duplicate_and_the_cursor_moves(rig: Rig, ended: bool) -> None:
    """As after a lost second: the worker has told the store of the job, but mark and cursor are gone."""
    adopt(rig)
    rig.tick(1_000)
    rig.store.enqueue([job(CLOCK + 500)])
    running = rig.one()
    if ended:
        rig.end(running)
    assert fire(rig, CLOCK, emit(CLOCK + 500)) == Fired(CLOCK + 500, (Fate.DUPLICATE,))
    assert rig.take() == ()
    assert (at(rig), fates(rig), marks(rig)) == (CLOCK + 500, {"duplicate": 1}, [(CLOCK + 500, "duplicate")])
    if not ended:
        rig.end(running)


def test_stretches_are_one_mark_and_count_in_full(rig: Rig) -> None:
    adopt(rig)
    rig.tick(10_000)
    into = CLOCK + 9_000
    coalesced = Decided(CLOCK + 8_000, Fate.COALESCED, CLOCK + 4_000, 5, str(into))
    reply = fire(rig, CLOCK, missed(CLOCK + 1_000, CLOCK + 3_000, 3), (coalesced, None), emit(into))
    assert reply == Fired(into, (Fate.MISSED, Fate.COALESCED, Fate.EMITTED))
    assert fates(rig) == {"missed": 3, "coalesced": 5, "emitted": 1}
    found = [mark.decided for mark in Timetable(rig.store).history([NAME], 9)[NAME].marks]
    assert found[1:] == [coalesced, missed(CLOCK + 1_000, CLOCK + 3_000, 3)[0]]


# -- no room


def test_a_full_queue_keeps_the_cursor_and_says_since_when(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=1)})
    rig.worker()
    adopt(rig)
    rig.tick(3_000)
    reply = fire(rig, CLOCK, emit(CLOCK + 1_000), emit(CLOCK + 2_000), emit(CLOCK + 3_000))
    assert isinstance(reply, Fired)
    assert (reply.cursor_ms, reply.fates) == (CLOCK + 1_000, (Fate.EMITTED,))
    assert isinstance(reply.refusal, Full)
    assert (reply.refusal.scope, reply.refusal.depth, reply.refusal.limit) == ("queue:default", 1, 1)
    assert cursor(rig) == Cursor(CLOCK + 1_000, CLOCK + 3_000, CLOCK + 3_000)
    rig.tick(500)
    assert isinstance(fire(rig, CLOCK + 1_000, emit(CLOCK + 2_000)), Fired)
    assert cursor(rig) == Cursor(CLOCK + 1_000, CLOCK + 3_000, CLOCK + 3_500)
    rig.end(rig.one())
    assert fire(rig, CLOCK + 1_000, emit(CLOCK + 2_000)) == Fired(CLOCK + 2_000, (Fate.EMITTED,))
    assert cursor(rig) == Cursor(CLOCK + 2_000, 0, CLOCK + 3_500)
    assert fates(rig) == {"emitted": 2}


def test_a_tenant_at_its_bound_and_a_closed_queue(rig: Rig) -> None:
    adopt(rig)
    rig.tick(1_000)
    rig.limits(tenant=limit(depth=0))
    reply = fire(rig, CLOCK, emit(CLOCK + 1))
    assert isinstance(reply, Fired)
    assert isinstance(reply.refusal, Full)
    assert reply.refusal.scope == "tenant:default"
    rig.limits(queue=limit(closed=True))
    assert fire(rig, CLOCK, emit(CLOCK + 1)) == Fired(CLOCK, (), Closed("default"))
    rig.limits()
    assert fire(rig, CLOCK, emit(CLOCK + 1)) == Fired(CLOCK + 1, (Fate.EMITTED,))


def test_what_is_missed_needs_no_room(make: MakeRig) -> None:
    rig = make(queues={"default": QueueSettings(max_depth=1)})
    adopt(rig)
    rig.put()
    rig.tick(1_000)
    reply = fire(rig, CLOCK, missed(CLOCK + 1, CLOCK + 1, 1, Missed.START_DEADLINE))
    assert reply == Fired(CLOCK + 1, (Fate.MISSED,))
    (mark,) = Timetable(rig.store).history([NAME])[NAME].marks
    assert mark.decided.detail == "start_deadline"


# -- marks


def test_marks_are_bounded_and_what_they_were_about_stays_decided(rig: Rig) -> None:
    adopt(rig)
    rig.tick(1_000_000)
    for n in range(8):
        times = range(CLOCK + n * 20_000 + 1_000, CLOCK + (n + 1) * 20_000 + 1, 1_000)
        fire(rig, CLOCK + n * 20_000, *(missed(time, time, 1) for time in times))
    found = Timetable(rig.store).history([NAME], 999)[NAME]
    assert 64 <= len(found.marks) <= 96
    assert found.marks[0].decided.at_ms == found.cursor.at_ms == CLOCK + 160_000
    assert found.watermark_ms == found.marks[-1].decided.at_ms - 1_000
    assert fates(rig) == {"missed": 160}


# -- clocks


def test_a_clock_that_goes_back_a_little_fires_nothing_until_it_is_there_again(rig: Rig) -> None:
    adopt(rig)
    rig.tick(5_000)
    fire(rig, CLOCK, emit(CLOCK + 4_000))
    rig.tick(-3_000)
    assert at(rig) == CLOCK + 4_000


def test_a_clock_that_was_far_ahead_silences_no_schedule_and_fires_nothing_twice(rig: Rig) -> None:
    year = 365 * 86_400_000
    adopt(rig)
    rig.tick(year)
    ahead = CLOCK + year - 1_000
    fire(rig, CLOCK, emit(ahead))
    rig.tick(-year)
    assert at(rig) == CLOCK, "there is no cursor in the future"
    rig.tick(1_000)
    assert fire(rig, CLOCK, emit(CLOCK + 1_000)) == Fired(CLOCK + 1_000, (Fate.EMITTED,))
    assert [time for time, _ in marks(rig)] == [ahead, CLOCK + 1_000]
    for _ in range(2):
        rig.end(rig.one())
    rig.client.delete(f"{rig.store.key_prefix}hist")
    rig.tick(year)
    assert fire(rig, CLOCK + 1_000, emit(ahead)) == Fired(ahead, (Fate.DUPLICATE,)), "a year later"
    assert rig.state(f"fire {ahead}") is None


def test_marks_beyond_the_cursor_are_not_trimmed(rig: Rig) -> None:
    adopt(rig)
    rig.tick(10_000_000)
    for n in range(3):
        fire(
            rig,
            CLOCK + n * 30,
            *(missed(time, time, 1) for time in range(CLOCK + n * 30 + 1, CLOCK + n * 30 + 31)),
        )
    begin = CLOCK + 9_000_000
    fire(rig, CLOCK + 90, *(missed(time, time, 1) for time in range(begin, begin + 30)))
    rig.tick(-9_900_000)
    assert at(rig) == CLOCK + 100_000
    fire(rig, CLOCK + 100_000, missed(CLOCK + 100_000, CLOCK + 100_000, 1))
    rig.tick(1_000)
    fire(rig, CLOCK + 100_000, missed(CLOCK + 100_500, CLOCK + 100_500, 1))
    history = Timetable(rig.store).history([NAME], 999)[NAME]
    assert history.watermark_ms <= history.cursor.at_ms == CLOCK + 100_500


def test_history_knows_only_what_was_adopted(rig: Rig) -> None:
    adopt(rig)
    assert list(Timetable(rig.store).history([NAME, "never seen"])) == [NAME]
    assert Timetable(rig.store).history([NAME])[NAME].marks == ()


def test_a_fire_job_is_like_any_other(rig: Rig) -> None:
    adopt(rig)
    rig.tick(1_000)
    time = CLOCK + 500
    fire(rig, CLOCK, emit(time, tenant="t 1", resources=("key:a b",), deadline_ms=CLOCK + 9_000))
    job = rig.one()
    assert (job.tenant, job.deadline_ms) == ("t 1", CLOCK + 9_000)
    rig.end(job)
    assert rig.state(f"fire {time}") is State.SUCCEEDED
