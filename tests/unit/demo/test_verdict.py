"""The demo's verdict must notice each kind of wrong, one at a time."""

from __future__ import annotations

import pytest

from tidegate.demo.ledger import Entry
from tidegate.demo.verdict import Store, Verdict, judge, p95


def sent(job: str, at: float = 0.0, tenant: str = "acme") -> Entry:
    return Entry("accepted", at, job, tenant)


def begin(job: str, at: float, attempt: int = 1, pid: int = 7, tenant: str = "acme", **info: str) -> Entry:
    return Entry("begin", at, job, tenant, attempt, pid, info)


def end(job: str, at: float, attempt: int = 1, kind: str = "end") -> Entry:
    return Entry(kind, at, job, "acme", attempt, 7)


def killed(at: float, *pids: int) -> Entry:
    return Entry("killed", at, info={"pids": list(pids)})


def ran(job: str, at: float, until: float, tenant: str = "acme") -> list[Entry]:
    return [sent(job, at - 0.1, tenant), begin(job, at, tenant=tenant), end(job, until)]


def verdict(
    *entries: Entry,
    succeeded: tuple[str, ...] = (),
    dead: tuple[str, ...] = (),
    unfinished: int = 0,
    limit: int = 2,
    due: tuple[str, ...] = (),
) -> Verdict:
    ordered = sorted(entries, key=lambda entry: entry.at)
    return judge(ordered, Store(succeeded, dead, unfinished, 0), {"acme": limit}, due, 0.0, 1.0)


def test_a_run_in_which_nothing_went_wrong() -> None:
    found = verdict(*ran("a", 1, 2), *ran("b", 1.5, 3), succeeded=("a", "b"))
    assert found.holds
    assert (found.submitted, found.accepted, found.succeeded, found.lost) == (2, 2, 2, 0)
    assert found.peak_concurrency == {"acme": 2}
    assert found.wait_p95 == {"acme": 0.1}


def test_a_job_that_never_ran_is_lost() -> None:
    assert verdict(sent("a"), succeeded=("a",)).lost == 1


def test_a_job_that_ran_and_that_the_store_does_not_call_finished_is_lost() -> None:
    assert verdict(*ran("a", 1, 2)).lost == 1


def test_a_job_that_only_failed_and_is_no_dead_letter_is_lost() -> None:
    assert verdict(sent("a"), begin("a", 1), end("a", 2, kind="failed"), succeeded=("a",)).lost == 1


def test_a_dead_letter_is_not_lost() -> None:
    found = verdict(sent("a"), begin("a", 1), end("a", 2, kind="failed"), dead=("a",))
    assert (found.lost, found.dead, found.holds) == (0, 1, True)


def test_what_the_store_still_holds_is_lost_to_the_demo() -> None:
    assert verdict(*ran("a", 1, 2), succeeded=("a",), unfinished=1).lost == 1


def test_two_attempts_at_once() -> None:
    found = verdict(*ran("a", 1, 3), begin("a", 2, attempt=2), end("a", 2.5, attempt=2), succeeded=("a",))
    assert (found.overlapping_attempts, found.holds) == (1, False)


@pytest.mark.parametrize(("death", "overlapping"), [(1.5, 0), (2.5, 1), (None, 1)])
def test_an_attempt_without_an_end_lived_until_its_process_was_killed(
    death: float | None, overlapping: int
) -> None:
    rerun = [begin("a", 2, attempt=2, pid=8), end("a", 3, attempt=2)]
    deaths = [] if death is None else [killed(death, 7)]
    found = verdict(sent("a"), begin("a", 1), *deaths, *rerun, succeeded=("a",))
    assert found.overlapping_attempts == overlapping


def test_a_tenant_above_its_limit() -> None:
    both = (*ran("a", 1, 3), *ran("b", 2, 4))
    assert verdict(*both, succeeded=("a", "b"), limit=1).limit_violations == 1
    assert verdict(*both, succeeded=("a", "b"), limit=2).limit_violations == 0


def test_one_that_ends_when_another_begins_is_not_beside_it() -> None:
    assert verdict(*ran("a", 1, 2), *ran("b", 2, 3), succeeded=("a", "b"), limit=1).holds


def test_a_fire_that_became_two_jobs() -> None:
    found = verdict(begin("f1", 1, fire="10:00"), begin("f2", 2, fire="10:00"), killed(3, 7))
    assert (found.fires, found.fires_duplicated, found.holds) == (1, 1, False)


def test_a_fire_whose_job_was_made_twice() -> None:
    assert verdict(begin("f", 1, fire="10:00"), begin("f", 2, fire="10:00")).fires_duplicated == 1


def test_a_second_attempt_of_a_fire_is_the_same_fire() -> None:
    found = verdict(begin("f", 1, fire="10:00"), killed(1.5, 7), begin("f", 2, attempt=2, fire="10:00"))
    assert (found.fires, found.fires_duplicated) == (1, 0)


def test_a_fire_that_did_not_come() -> None:
    assert verdict(begin("f", 1, fire="10:00"), due=("10:00", "10:02")).fires_missed == 1


def test_answers_of_the_producers_are_counted() -> None:
    no, again = Entry("rejected", 0.0, tenant="acme"), Entry("duplicate", 0.0, "a", "acme")
    found = verdict(*ran("a", 1, 2), no, no, again, succeeded=("a",))
    assert (found.submitted, found.accepted, found.rejected, found.duplicates) == (4, 1, 2, 1)


def test_waits_before_and_after_the_load_began() -> None:
    entries = [sent("a", 1), begin("a", 1.2), end("a", 2), sent("b", 5), begin("b", 6), end("b", 7)]
    found = judge(entries, Store(("a", "b"), (), 0, 0), {"acme": 2}, (), 4.0, 9.0)
    assert (found.wait_p95_idle, found.wait_p95) == ({"acme": 0.2}, {"acme": 1.0})


def test_the_95th_percentile_is_the_nearest_rank() -> None:
    assert p95(range(1, 101)) == 95
    assert p95([3.0]) == 3.0
    assert p95([]) == 0.0
