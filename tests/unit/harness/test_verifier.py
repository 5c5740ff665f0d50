"""The verifier must find what is planted: one that cannot fail proves nothing."""

from __future__ import annotations

import random
from itertools import count
from math import inf

import pytest
from tests.harness.ledger import Entry
from tests.harness.procfs import ProcessId
from tests.harness.verifier import Verifier

MAIN = ProcessId(100, 1)
OTHER_MAIN = ProcessId(200, 2)
CHILD = ProcessId(101, 11)
OTHER_CHILD = ProcessId(201, 22)


class Book:
    """A hand-made ledger."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._ids = count()

    def begin(
        self, job: str, at: float, *, process: ProcessId = CHILD, worker: ProcessId = MAIN, **info: object
    ) -> str:
        attempt = f"a{next(self._ids)}"
        self.entries.append(Entry("begin", at, process, worker, attempt=attempt, job=job, info=info))
        return attempt

    def end(self, attempt: str, at: float) -> None:
        self.entries.append(Entry("end", at, CHILD, MAIN, attempt=attempt))

    def run(self, job: str, begin: float, end: float, **where: object) -> None:
        self.end(self.begin(job, begin, **where), end)  # type: ignore[arg-type]

    def told(self, kind: str, job: str, at: float = 0.0) -> None:
        self.entries.append(Entry(kind, at, MAIN, MAIN, job=job))

    def happened(self, what: str, process: ProcessId, after: float, before: float) -> None:
        info = {"pid": process.pid, "start": process.start, "after": after, "before": before}
        self.entries.append(Entry(what, before, MAIN, MAIN, info=info))

    def server_kill(self, lost_after: float, killed_at: float) -> None:
        info = {"lost_after": lost_after, "killed_at": killed_at}
        self.entries.append(Entry("server_kill", killed_at, MAIN, MAIN, info=info))

    def verdict(self) -> Verifier:
        shuffled = self.entries[:]
        random.shuffle(shuffled)  # the order in which the ledger's server took them says nothing
        return Verifier(shuffled)


@pytest.fixture
def book() -> Book:
    return Book()


# -- overlaps --


def test_attempts_one_after_the_other_do_not_overlap(book: Book) -> None:
    book.run("j", 1, 2)
    book.run("j", 2, 3, process=OTHER_CHILD)
    assert book.verdict().overlaps() == []


def test_a_planted_overlap_is_found_and_measured(book: Book) -> None:
    book.run("j", 1, 3)
    book.run("j", 2.5, 4, process=OTHER_CHILD)
    book.run("other", 1, 4)
    (found,) = book.verdict().overlaps()
    assert (found.job, found.seconds, found.begin, found.since_thaw) == ("j", 0.5, 2.5, None)


def test_an_overlap_inside_one_process_is_found(book: Book) -> None:
    book.run("j", 1, 3)
    book.run("j", 2, 4)
    assert len(book.verdict().overlaps()) == 1


def test_every_pair_of_three_is_reported(book: Book) -> None:
    for begin in (1, 2, 3):
        book.run("j", begin, 9)
    assert len(book.verdict().overlaps()) == 3


def test_an_attempt_without_end_lives_for_ever_unless_its_death_is_known(book: Book) -> None:
    book.begin("j", 1)
    book.run("j", 5, 6, process=OTHER_CHILD)
    assert len(book.verdict().overlaps()) == 1
    book.happened("death", CHILD, after=4.0, before=4.1)
    assert book.verdict().overlaps() == []


def test_a_death_after_the_next_begin_is_an_overlap(book: Book) -> None:
    book.begin("j", 1)
    book.happened("death", CHILD, after=5.5, before=5.6)
    book.run("j", 5, 6, process=OTHER_CHILD)
    (found,) = book.verdict().overlaps()
    assert found.seconds == 0.5


def test_the_unknown_instant_of_a_death_gives_a_possible_overlap_only(book: Book) -> None:
    book.begin("j", 1)
    book.happened("death", CHILD, after=4.9, before=5.1)
    book.run("j", 5, 6, process=OTHER_CHILD)
    assert book.verdict().overlaps() == []
    assert len(book.verdict().overlaps(possible=True)) == 1


def test_two_reports_of_one_death_narrow_it(book: Book) -> None:
    book.begin("j", 1)
    book.happened("death", CHILD, after=4.0, before=5.5)
    book.happened("death", CHILD, after=3.0, before=4.9)
    book.run("j", 5, 6, process=OTHER_CHILD)
    assert book.verdict().overlaps(possible=True) == []


def test_the_death_of_a_process_with_the_same_pid_says_nothing(book: Book) -> None:
    book.begin("j", 1)
    book.happened("death", ProcessId(CHILD.pid, CHILD.start - 1), after=2, before=2)
    book.run("j", 5, 6, process=OTHER_CHILD)
    assert len(book.verdict().overlaps()) == 1


def test_frozen_time_is_not_life(book: Book) -> None:
    book.begin("j", 1)
    book.happened("frozen", CHILD, after=2, before=2.1)
    book.run("j", 3, 4, process=OTHER_CHILD)
    book.happened("thawed", CHILD, after=5, before=5)
    book.happened("death", CHILD, after=5.1, before=5.1)
    assert book.verdict().overlaps() == []


def test_life_after_the_thaw_counts_and_says_how_long_after(book: Book) -> None:
    attempt = book.begin("j", 1)
    book.happened("frozen", CHILD, after=2, before=2)
    book.happened("thawed", CHILD, after=5, before=5)
    book.end(attempt, 5.25)
    book.run("j", 3, 9, process=OTHER_CHILD)
    (found,) = book.verdict().overlaps()
    assert (found.seconds, found.begin, found.since_thaw) == (0.25, 5, 0)


def test_life_between_begin_and_freeze_counts(book: Book) -> None:
    attempt = book.begin("j", 1)
    book.happened("frozen", CHILD, after=4, before=4)
    book.happened("thawed", CHILD, after=8, before=8)
    book.end(attempt, 8)
    book.run("j", 3, 7, process=OTHER_CHILD)
    (found,) = book.verdict().overlaps()
    assert found.seconds == 1


def test_a_freeze_of_another_process_excuses_nothing(book: Book) -> None:
    book.run("j", 1, 6)
    book.happened("frozen", MAIN, after=2, before=2)
    book.happened("thawed", MAIN, after=8, before=8)
    book.run("j", 3, 4, process=OTHER_CHILD)
    assert len(book.verdict().overlaps()) == 1


# -- losses, refusals, duplicates --


def test_a_planted_loss_is_found(book: Book) -> None:
    for job in ("done", "begun", "never"):
        book.told("accepted", job)
    book.run("done", 1, 2)
    book.begin("begun", 1)
    assert book.verdict().lost() == {"begun", "never"}
    assert book.verdict().lost(["done", "never"]) == {"never"}


def test_a_refused_job_that_ran_is_found(book: Book) -> None:
    book.told("refused", "no")
    book.told("refused", "second-try")
    book.told("accepted", "second-try")
    book.run("no", 1, 2)
    book.run("second-try", 1, 2)
    assert book.verdict().unwanted() == {"no"}


def test_a_planted_duplicate_is_found_and_a_rerun_is_not_one(book: Book) -> None:
    book.run("twice", 1, 2)
    book.run("twice", 3, 4)
    book.begin("rerun", 1)
    book.run("rerun", 3, 4)
    assert set(book.verdict().duplicates()) == {"twice"}
    assert set(book.verdict().reruns()) == {"twice", "rerun"}


def test_a_duplicate_is_explained_by_a_server_kill_and_the_death_of_who_remembered(book: Book) -> None:
    book.run("j", 1, 5)
    book.server_kill(lost_after=4, killed_at=6)
    book.happened("death", MAIN, after=6.5, before=6.6)
    book.run("j", 7, 8, process=OTHER_CHILD, worker=OTHER_MAIN)
    assert book.verdict().duplicates()
    assert book.verdict().unexplained_duplicates() == {}


@pytest.mark.parametrize(
    ("lost_after", "killed_at", "dead", "when"),
    [
        (5.1, 6, MAIN, 6.5),  # the end was before what was lost
        (4, 4.9, MAIN, 6.5),  # the end came after the kill
        (4, 6, CHILD, 6.5),  # only the child died: the main process remembered
        (4, 6, OTHER_MAIN, 6.5),  # another worker died
        (4, 6, MAIN, 7.5),  # it died after the second attempt had begun
        (4, 6, MAIN, 0.5),  # it died before the first one ended
        (4, 6, None, inf),  # nobody died
    ],
)
def test_anything_else_explains_nothing(
    book: Book, lost_after: float, killed_at: float, dead: ProcessId | None, when: float
) -> None:
    book.run("j", 1, 5)
    book.server_kill(lost_after, killed_at)
    if dead is not None:
        book.happened("death", dead, after=when, before=when)
    book.run("j", 7, 8, process=OTHER_CHILD, worker=OTHER_MAIN)
    assert set(book.verdict().unexplained_duplicates()) == {"j"}


def test_each_repetition_needs_its_own_explanation(book: Book) -> None:
    book.run("j", 1, 5)
    book.server_kill(lost_after=4, killed_at=6)
    book.happened("death", MAIN, after=6.5, before=6.6)
    book.run("j", 7, 8, process=OTHER_CHILD, worker=OTHER_MAIN)
    book.run("j", 9, 10, process=OTHER_CHILD, worker=OTHER_MAIN)
    assert set(book.verdict().unexplained_duplicates()) == {"j"}


# -- limits --


def test_peak_concurrency_per_tenant(book: Book) -> None:
    book.run("a1", 1, 3, tenant="a")
    book.run("a2", 2, 4, tenant="a")
    book.run("a3", 3, 5, tenant="a")  # begins when a1 ends: never three at once
    book.run("b1", 1, 5, tenant="b")
    assert book.verdict().peak_concurrency(by="tenant") == {"a": 2, "b": 1}
    assert book.verdict().peak_concurrency() == {"": 3}


def test_an_attempt_without_end_keeps_its_place_until_its_process_dies(book: Book) -> None:
    book.begin("a1", 1)
    book.run("a2", 5, 6, process=OTHER_CHILD)
    assert book.verdict().peak_concurrency() == {"": 2}
    book.happened("death", CHILD, after=4, before=4)
    assert book.verdict().peak_concurrency() == {"": 1}


def test_rate_windows_count_begins_in_half_open_windows(book: Book) -> None:
    for at in (0.0, 0.5, 0.9, 1.0, 3.0):
        book.run(f"j{at}", at, at + 9, tenant="a")
    assert book.verdict().rate_windows(1.0, by="tenant") == {"a": 3}
    assert book.verdict().rate_windows(10.0) == {"": 5}


def test_the_worst_burst_of_a_steady_stream_is_one(book: Book) -> None:
    for number in range(20):
        book.run(f"j{number}", number / 4, 99)
    assert book.verdict().worst_burst(rate=4) == {"": pytest.approx(1)}


def test_the_worst_burst_is_found_in_the_middle_of_a_stream(book: Book) -> None:
    times = [0.0, 1.0, 5.0, 5.0, 5.0, 6.0, 20.0]
    for number, at in enumerate(times):
        book.run(f"j{number}", at, 99)
    assert book.verdict().worst_burst(rate=1) == {"": pytest.approx(3)}
    brute = max(j - i + 1 - (times[j] - times[i]) for i in range(7) for j in range(i, 7))
    assert book.verdict().worst_burst(rate=1)[""] == pytest.approx(brute)
