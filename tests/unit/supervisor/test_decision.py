"""What becomes of a part that has ended: every status, every history, without a process."""

from __future__ import annotations

import signal

import pytest

from tidegate.supervisor.decision import Done, GiveUp, History, Restart, decide, reason

FRESH = History()


def after(history: History, status: int, *, lived: float) -> Restart:
    """The decision at 1000 s about a life of this length; it must be another start."""
    found = decide(history, status, started=1000.0 - lived, now=1000.0, stopping=False)
    assert isinstance(found, Restart)
    return found


def test_short_lives_are_started_again_ever_more_slowly_up_to_thirty_seconds() -> None:
    waits, history = [], FRESH
    for _ in range(8):
        found = after(history, 1, lived=0.2)
        waits.append(found.at - 1000.0)
        history = found.history
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_thousand_short_lives_still_wait_thirty_seconds() -> None:
    assert after(History(short=1000), 1, lived=0.0).at == 1030.0


@pytest.mark.parametrize(("lived", "wait"), [(59.9, 16.0), (60.0, 1.0), (86_400.0, 1.0)])
def test_a_life_of_a_minute_starts_the_count_again(lived: float, wait: float) -> None:
    found = after(History(short=4), -signal.SIGKILL, lived=lived)
    assert found.at - 1000.0 == wait


def test_the_wait_after_a_good_life_grows_again() -> None:
    found = after(after(History(short=4), 1, lived=61.0).history, 1, lived=0.1)
    assert found.at == 1002.0


@pytest.mark.parametrize("status", [0, 1, 3, 70, 120, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGSEGV])
def test_every_other_end_is_started_again(status: int) -> None:
    assert after(FRESH, status, lived=0.5).at == 1001.0


@pytest.mark.parametrize("status", [2, 4])
@pytest.mark.parametrize("history", [FRESH, History(short=3)])
def test_usage_and_configuration_end_everything_before_the_part_ever_ran_well(
    status: int, history: History
) -> None:
    assert decide(history, status, started=0.0, now=1.0, stopping=False) == GiveUp(status)


@pytest.mark.parametrize("status", [2, 4])
def test_a_part_that_has_run_well_waits_for_better_settings(status: int) -> None:
    """A file saved half-written, while a worker is started again, must not end a fleet that works."""
    good = after(FRESH, -signal.SIGKILL, lived=3600.0)
    assert after(good.history, status, lived=0.5).at == 1002.0
    assert after(FRESH, status, lived=60.0).at == 1001.0


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, -9])
def test_nothing_is_started_while_all_are_to_end(status: int) -> None:
    assert decide(FRESH, status, started=0.0, now=1.0, stopping=True) == Done()


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "exit status 0"),
        (3, "exit status 3 (store unreachable)"),
        (4, "exit status 4 (configuration)"),
        (70, "exit status 70"),
        (-9, "killed by SIGKILL"),
        (-200, "killed by signal 200"),
    ],
)
def test_the_reason_in_words(status: int, text: str) -> None:
    assert reason(status) == text
