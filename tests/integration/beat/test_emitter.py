"""Emitters on a real store: whatever happens to them, a fire has its job once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from tests.harness.server import Server
from tests.harness.wait import wait_until
from tests.lua.epoch.place import Place, done
from tests.lua.rig import CLOCK, Rig, settings

from tidegate.config import QueueSettings, Sections, Settings
from tidegate.config.schedule import CatchUp, ScheduleSettings
from tidegate.domain.fire import Cursor, Fate, utc_text
from tidegate.domain.header import HEADER
from tidegate.domain.identity import fire_operation_id
from tidegate.domain.states import State
from tidegate.store import Store, Timetable
from tidegate.telemetry.faultpoint import FaultReached
from tidegate_beat import emitter
from tidegate_beat.emitter import Emitter
from tidegate_beat.process import duties
from tidegate_beat.registry import schedules

SECOND, MINUTE = 1_000, 60_000
TICK = ScheduleSettings(task="t", every=1.0, catch_up=CatchUp.ALL, catch_up_max=1_000)


class Beat:
    """One emitter, with its own view of the settings."""

    def __init__(self, rig: Rig, **known: ScheduleSettings) -> None:
        self.settings: Settings = replace(rig.settings, schedules=Sections(known))
        self.store = Store.open(self.settings, "beat", url=rig.url)
        self.emitter = Emitter(self.store, self.settings, schedules(self.settings))
        self.run()

    def run(self) -> None:
        """Until there is nothing to do now."""
        self.emitter._later = [
            (0, name) for _, name in self.emitter._later
        ]  # the test clock is not the process's
        while self.emitter.step():
            pass


MakeBeat = Callable[..., Beat]


@pytest.fixture
def rig(shared_server: Server, fleet: str) -> Iterator[Rig]:
    rig = Rig(
        shared_server.client(),
        shared_server.url,
        settings(fleet, queues={"small": QueueSettings(max_depth=2)}),
    )
    rig.worker()
    yield rig
    rig.close()


@pytest.fixture
def beat(rig: Rig) -> Iterator[MakeBeat]:
    beats: list[Beat] = []

    def make(**known: ScheduleSettings) -> Beat:
        beats.append(Beat(rig, **known))
        return beats[-1]

    yield make
    for one in beats:
        one.store.close()


def jobs(rig: Rig) -> list[str]:
    """Operations of all jobs that are there."""
    return sorted(job.words[3] for job in rig.dump().jobs.values())


def fires(rig: Rig, name: str, *seconds: int) -> list[str]:
    """Operations of the fires at these seconds after the start."""
    fleet = rig.settings.fleet.name
    return sorted(fire_operation_id(fleet, name, utc_text(CLOCK + second * SECOND)) for second in seconds)


def fates(rig: Rig, name: str, most: int = 100) -> list[tuple[int, str]]:
    """(seconds after the start, fate), the latest first."""
    found = Timetable(rig.store).history([name], most)[name].marks
    return [((mark.decided.at_ms - CLOCK) // SECOND, mark.decided.fate.value) for mark in found]


def reaching(monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """The next arrival there ends the round, as a death of the process would."""

    def reach(name: str) -> None:
        if name == point:
            monkeypatch.undo()
            raise FaultReached(name)

    monkeypatch.setattr(emitter, "reach", reach)


# -- one emitter


def test_fires_come_at_their_times_as_jobs_of_the_schedule(rig: Rig, beat: MakeBeat) -> None:
    said = replace(
        TICK,
        args=(1, Sections({"a": (2,)})),
        kwargs=Sections({"region": "cn"}),
        tenant="acme",
        timezone="Asia/Shanghai",
        deadline=60.0,
        pass_fire_time=True,
    )
    one = beat(tick=said)
    assert jobs(rig) == []
    rig.tick(1_500)
    one.run()
    job = rig.one()
    message: dict[str, Any] = json.loads(job.envelope)
    assert [job.operation_id] == fires(rig, "tick", 1)
    assert (job.task, job.tenant, job.deadline_ms) == ("t", "acme", CLOCK + SECOND + MINUTE)
    assert json.loads(message["body"])[:2] == [[1, {"a": [2]}], {"region": "cn"}]
    assert message["headers"][HEADER] == {
        "schedule": "tick",
        "logical_fire_time": "2027-01-15T16:00:01+08:00[Asia/Shanghai]",
    }
    rig.end(job)


def test_a_round_sleeps_until_the_next_fire_and_a_second_at_most(rig: Rig, beat: MakeBeat) -> None:
    hourly = beat(hourly=replace(TICK, every=3_600.0))
    assert hourly.emitter.rest() == emitter.LONGEST
    rig.tick(3_600_000 - CLOCK % 3_600_000 - 400)
    hourly.emitter.step()
    assert 0.2 < hourly.emitter.rest() <= 0.4


def test_an_edited_expression_goes_on_from_the_edit(rig: Rig, beat: MakeBeat) -> None:
    old = beat(tick=replace(TICK, every=7.0))
    rig.tick(5 * SECOND)
    new = beat(tick=TICK)
    assert jobs(rig) == [], "an edit fires nothing"
    rig.tick(3 * SECOND)
    old.run()  # still runs with the old settings: it leaves the schedule
    new.run()
    assert jobs(rig) == fires(rig, "tick", 6, 7, 8), "and skips nothing"


def test_other_arguments_are_no_edit_of_its_times(rig: Rig, beat: MakeBeat) -> None:
    beat(tick=TICK)
    rig.tick(2 * SECOND)
    beat(tick=replace(TICK, task="other", every=1.0))
    assert jobs(rig) == fires(rig, "tick", 1, 2)


@pytest.mark.parametrize("back", [3, 50, 200])
def test_a_clock_that_jumps_back_fires_nothing_again(rig: Rig, beat: MakeBeat, back: int) -> None:
    one = beat(tick=TICK)
    for _ in range(30):
        rig.tick(10 * SECOND)
        one.run()
    rig.tick(-back * SECOND)
    one.run()
    rig.tick(back * SECOND + SECOND)
    one.run()
    assert jobs(rig) == fires(rig, "tick", *range(1, 302))


def test_a_year_ahead_for_a_moment_neither_floods_nor_silences(rig: Rig, beat: MakeBeat) -> None:
    year = 365 * 86_400 * SECOND
    one = beat(tick=replace(TICK, every=60.0, catch_up=CatchUp.LATEST))
    rig.tick(year)
    one.run()
    ahead = len(jobs(rig))
    assert 1 <= ahead <= 2
    rig.tick(-year)
    one.run()
    rig.tick(60 * SECOND)
    one.run()
    assert len(jobs(rig)) == ahead + 1


def test_many_schedules_at_the_same_instant(rig: Rig, beat: MakeBeat) -> None:
    one = beat(**{f"s{n}": replace(TICK, every=60.0) for n in range(600)})
    rig.tick(60 * SECOND)
    one.run()
    assert len(jobs(rig)) == 600


def test_a_long_outage_that_is_caught_up_whole(rig: Rig, beat: MakeBeat) -> None:
    one = beat(tick=TICK)
    rig.tick(700 * SECOND)
    one.run()
    assert jobs(rig) == fires(rig, "tick", *range(1, 701)), "in more than one script and more than one plan"


# -- no room


def test_a_full_queue_and_then_room(rig: Rig, beat: MakeBeat, caplog: pytest.LogCaptureFixture) -> None:
    one = beat(tick=replace(TICK, queue="small", catch_up=CatchUp.SKIP))
    rig.tick(4 * SECOND)
    with caplog.at_level(logging.INFO):
        one.run()
        assert len(jobs(rig)) == 2
        for _ in range(30):  # longer than the grace, and the policy is to skip
            rig.tick(SECOND)
            one.run()
        assert "schedule tick: its next fire waits, because queue:small is full" in caplog.text
        assert caplog.text.count("its next fire waits") == 1
        ran = [rig.end(rig.one(queues=("small",))) for _ in range(2)]
        assert len(ran) == 2
        one.run()
        assert jobs(rig) == fires(rig, "tick", 3, 4), "what waited was not missed, and comes in order"
    assert Fate.MISSED.value not in dict(fates(rig, "tick")).values()


def test_a_fire_waits_until_its_start_deadline(rig: Rig, beat: MakeBeat) -> None:
    one = beat(tick=replace(TICK, queue="small", start_deadline=5.0))
    rig.tick(3 * SECOND)
    one.run()
    rig.tick(5 * SECOND)
    one.run()
    assert fates(rig, "tick")[0] == (3, "missed")
    (mark,) = Timetable(rig.store).history(["tick"])["tick"].marks
    assert mark.decided.detail == "start_deadline"


# -- two of them


@pytest.mark.parametrize("point", ["fire.planned", "fire.done", "fire.told"])
def test_an_emitter_dies_and_another_goes_on(
    rig: Rig, beat: MakeBeat, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    first, second = beat(tick=TICK), beat(tick=TICK)
    rig.tick(40 * SECOND)  # more than one script
    reaching(monkeypatch, point)
    with pytest.raises(FaultReached):
        first.run()
    second.run()
    first.run()
    assert jobs(rig) == fires(rig, "tick", *range(1, 41))
    assert Cursor(CLOCK + 40 * SECOND) == Timetable(rig.store).history(["tick"])["tick"].cursor


def test_two_at_once_between_plan_and_script(
    rig: Rig, beat: MakeBeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = beat(tick=TICK), beat(tick=TICK)
    rig.tick(3 * SECOND)

    def meanwhile(name: str) -> None:
        if name == "fire.planned":
            monkeypatch.undo()
            second.run()
            rig.tick(SECOND)

    monkeypatch.setattr(emitter, "reach", meanwhile)
    first.run()
    assert jobs(rig) == fires(rig, "tick", 1, 2, 3, 4)


# -- a lost second


@pytest.fixture
def place(own_server: Any) -> Iterator[Place]:
    place = Place(own_server(options={"appendonly": "yes"}))
    yield place
    for rig in place.rigs:
        rig.close()


def test_a_fire_of_the_lost_second_fires_again(place: Place) -> None:
    rig = place.rig()
    one = Beat(rig, tick=TICK)
    place.remember()
    rig.tick(SECOND)
    one.run()
    place.come_back()
    assert jobs(rig) == []
    rig.tick(SECOND)
    one.run()
    assert jobs(rig) == fires(rig, "tick", 1)
    one.store.close()


def test_an_adoption_of_the_lost_second_is_made_again_from_its_cursor(place: Place) -> None:
    rig = place.rig()
    place.remember()
    one = Beat(rig, tick=TICK)
    place.come_back()
    rig.tick(2 * SECOND)
    one.run()
    assert jobs(rig) == fires(rig, "tick", 1, 2)
    one.store.close()


@pytest.mark.parametrize("ended", [False, True], ids=["runs", "has run"])
def test_a_job_of_the_lost_second_that_a_worker_knows_is_not_fired_again(place: Place, ended: bool) -> None:
    rig = place.rig()
    rig.worker()
    one = Beat(rig, tick=TICK)
    place.remember()
    rig.tick(SECOND)
    one.run()
    job = rig.one()
    if ended:
        rig.end(job)
    place.come_back()
    rig.tick(SECOND)
    one.run()
    assert rig.dump().get("fates") is None, "nothing is decided before the worker has spoken"
    rig.store.reassert("w1", [] if ended else [job], [done(job)] if ended else [])
    one.run()
    assert fates(rig, "tick") == [(1, "duplicate")]
    assert rig.state(job.operation_id) is (State.SUCCEEDED if ended else State.RUNNING)
    assert rig.take() == ()
    one.store.close()


# -- beside the other duties


def test_an_emitter_that_hangs_delays_no_other_duty(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, released = Event(), Event()

    def hang(self: Emitter) -> bool:
        hangs.set()
        released.wait(30)
        return False

    monkeypatch.setattr(Emitter, "step", hang)
    rig.put("delayed", delay_ms=500)
    loops = duties(rig.store, rig.settings, {})
    for loop in loops:
        loop.start()
    assert hangs.wait(10)
    rig.tick(SECOND)
    wait_until(lambda: rig.state("delayed") is State.WAITING, "the promoter to go on", 10)
    released.set()
    assert all(loop.stop() for loop in loops)
