"""What is beyond a label's bound is merged, and nothing is lost or counted twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.job import Pressure
from tidegate.observe import bound
from tidegate.store import QueueCounts, WorkerInfo

EMPTY = QueueCounts(0, 0, 0, 0, 0, 0, 0, 10, 0, Pressure.GREEN)
counts = st.builds(
    QueueCounts,
    *[st.integers(0, 1000)] * 9,
    pressure=st.sampled_from(Pressure),
)
names = st.one_of(st.just("other"), st.text(min_size=1, max_size=3))


@given(st.dictionaries(names, counts, max_size=12), st.sets(names, max_size=4), st.integers(1, 8))
def test_sums_and_the_worst_survive(found: dict[str, QueueCounts], declared: set[str], most: int) -> None:
    kept = bound.queues(found, declared, most)
    assert len(kept) <= most
    for name in QueueCounts.__slots__:
        before, after = ([getattr(one, name) for one in part.values()] for part in (found, kept))
        if name == "pressure":
            assert max(map(bound.LEVELS.index, before), default=0) == max(
                map(bound.LEVELS.index, after), default=0
            )
        elif name == "oldest_age_ms":
            assert max(before, default=0) == max(after, default=0)
        else:
            assert sum(before) == sum(after)


def test_declared_queues_and_then_the_deepest_keep_their_series() -> None:
    found = {f"q{n}": replace(EMPTY, depth=n) for n in range(10)}
    assert set(bound.queues(found, {"q0", "q1"}, 5)) == {"q0", "q1", "q9", "q8", "other"}


def test_within_the_bound_nothing_changes() -> None:
    found = {"other": EMPTY, "b": replace(EMPTY, depth=3)}
    assert bound.queues(found, (), 2) == found


def test_workers_beyond_the_bound_are_counted() -> None:
    found = [WorkerInfo(f"w{n}", "host", n, ("default",), 1) for n in range(10)]
    assert bound.workers(found, 10) == {f"w{n}": 1 for n in range(10)}
    assert bound.workers(found, 4) == {"w0": 1, "w1": 1, "w2": 1, "other": 7}
