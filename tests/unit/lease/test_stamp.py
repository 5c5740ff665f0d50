"""The shared page and the book behind it: how old each lease is, who may start, when silence begins."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tidegate.domain.job import LeaseRef
from tidegate.worker.stamp import MODE_CHILDREN, Stamp, boottime_ns, fence_limit_ns, started_at
from tidegate.worker.tenure import Tenure, lease_tag

SECOND = 1_000_000_000
A, B = LeaseRef("a", 1), LeaseRef("b", 1)


@pytest.fixture
def stamp() -> Iterator[Stamp]:
    page = Stamp.create(12 * SECOND, MODE_CHILDREN, children=4, leases=3)
    yield page
    page.close()


class Clock:
    def __init__(self) -> None:
        self.now = 1000 * SECOND

    def __call__(self) -> int:
        return self.now


def test_the_limit_is_twelve_of_fifteen_seconds() -> None:
    assert fence_limit_ns(15_000) == 12 * SECOND


def test_silence_counts_only_while_a_body_runs(stamp: Stamp) -> None:
    stamp.confirm(0)
    assert not stamp.silent(100 * SECOND), "an idle worker's children need not die"
    assert stamp.admit(7, 50 * SECOND)
    assert not stamp.silent(62 * SECOND)
    assert stamp.silent(62 * SECOND + 1)
    stamp.expel(7)
    assert not stamp.silent(100 * SECOND)


def test_the_oldest_lease_decides(stamp: Stamp) -> None:
    stamp.confirm(50 * SECOND)
    stamp.admit(1, 60 * SECOND)
    assert stamp.sent_ns == 60 * SECOND, "nothing ran before: the first body's lease counts"
    stamp.admit(2, 55 * SECOND)
    assert stamp.sent_ns == 55 * SECOND
    stamp.admit(3, 58 * SECOND)
    assert stamp.sent_ns == 55 * SECOND


def test_a_lease_is_held_from_admit_to_expel(stamp: Stamp) -> None:
    tag = lease_tag("job:1")
    assert not stamp.holds(tag)
    stamp.admit(tag, 0)
    assert stamp.holds(tag)
    stamp.expel(tag)
    assert not stamp.holds(tag)
    stamp.expel(tag)
    assert stamp.open == 0


def test_a_full_page_admits_nothing_and_room_comes_back(stamp: Stamp) -> None:
    assert [stamp.admit(tag, 0) for tag in (1, 2, 3, 4)] == [True, True, True, False]
    assert stamp.open == 3
    stamp.expel(2)
    assert stamp.admit(4, 0)
    assert all(stamp.holds(tag) for tag in (1, 3, 4))


def test_another_mapping_sees_the_same_page(stamp: Stamp) -> None:
    other = Stamp.attach(os.dup(stamp.fd))
    stamp.admit(9, boottime_ns())
    assert other.holds(9)
    assert (other.main, other.open, other.limit_ns) == (os.getpid(), 1, 12 * SECOND)
    other.close()


def test_a_foreign_descriptor_is_refused() -> None:
    fd = os.memfd_create("other")
    os.ftruncate(fd, 4096)
    with pytest.raises(ValueError, match="not the page"):
        Stamp.attach(fd)
    os.close(fd)


def test_children_enter_by_index_and_a_new_one_takes_the_slot(stamp: Stamp) -> None:
    assert stamp.enter(0, 100, 5)
    assert stamp.enter(2, 101, 6)
    assert stamp.children() == [(100, 5), (101, 6)]
    stamp.note_fenced(2, 77)
    assert stamp.fenced() == (0, 1)
    assert stamp.enter(2, 102, 7)
    assert stamp.children() == [(100, 5), (102, 7)]
    assert stamp.fenced() == (0, 0)
    assert not stamp.enter(4, 103, 8), "more children than slots"


def test_start_time_names_a_process() -> None:
    assert started_at(os.getpid()) > 0
    assert started_at(2**22 + 1) == 0


def test_tags_are_never_zero_and_differ() -> None:
    assert lease_tag("a:1") != lease_tag("a:2") != 0


def test_a_body_starts_only_on_a_fresh_lease(stamp: Stamp) -> None:
    clock = Clock()
    tenure = Tenure(stamp, clock)
    tenure.granted([A, B], clock.now)
    clock.now += 12 * SECOND
    assert tenure.fresh(A)
    assert tenure.start(A)
    clock.now += 1
    assert not tenure.start(B), "the claim was sent longer ago than the fence allows"
    assert stamp.open == 1
    assert not tenure.start(LeaseRef("never", 1))


def test_a_heartbeat_confirms_only_what_it_named(stamp: Stamp) -> None:
    clock = Clock()
    tenure = Tenure(stamp, clock)
    tenure.granted([A], clock.now)
    tenure.start(A)
    sent = clock.now + 3 * SECOND
    tenure.granted([B], clock.now + SECOND)  # claimed before the heartbeat was sent, read after it
    clock.now += 4 * SECOND
    tenure.start(B)
    tenure.confirmed([A], sent)
    assert stamp.sent_ns == 1001 * SECOND, "B is as old as its claim"
    tenure.confirmed([A, B], sent)
    assert stamp.sent_ns == sent
    tenure.over(A)
    tenure.over(B)
    assert stamp.open == 0
    assert not stamp.holds(lease_tag(str(A)))


def test_a_late_confirmation_makes_no_lease_older(stamp: Stamp) -> None:
    clock = Clock()
    tenure = Tenure(stamp, clock)
    tenure.granted([A], clock.now)
    tenure.start(A)
    tenure.confirmed([A], clock.now - SECOND)
    assert stamp.sent_ns == clock.now
