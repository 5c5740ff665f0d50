"""The one place where an attempt ends: every way in, every way out, and who wins."""

from __future__ import annotations

import threading

from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, Outcome, OutcomeKind, Settled, SettleWord
from tidegate.worker.lease_table import LeaseTable


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def job(name: str, fence: int = 1) -> ClaimedJob:
    return ClaimedJob(
        ref=LeaseRef(name, fence),
        queue="default",
        tenant="default",
        operation_id="op",
        step="",
        task="t",
        task_id="id",
        attempt=1,
        charged=0,
        crashes=0,
        created_ms=0,
        eligible_ms=0,
        claimed_ms=0,
        deadline_ms=0,
        attempt_timeout_ms=0,
        effect=Effect.IDEMPOTENT,
        envelope=b"",
        record=bytes(68) + b"body",
    )


def ok(item: ClaimedJob) -> Outcome:
    return Outcome(item.ref, OutcomeKind.OK)


def failed(item: ClaimedJob) -> Outcome:
    return Outcome(item.ref, OutcomeKind.FAILED)


def test_a_lease_goes_from_claim_to_settled() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    assert table.live() == (a,)
    assert table.running() == ()
    assert table.hand(a.ref)
    assert table.running() == (a,)
    assert table.end(ok(a))
    assert table.running() == ()
    assert table.live() == (a,), "an unsettled attempt is still ours: beats go on"
    batch = table.take_outcomes()
    assert batch == (ok(a),)
    table.settled(batch, [SettleWord.OK])
    assert table.live() == ()
    assert table.recent() == (Settled(a.head, ok(a)),)


def test_the_gate_opens_exactly_once() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    assert table.startable(a.ref)
    assert [table.hand(a.ref) for _ in range(3)] == [True, False, False]
    assert not table.startable(a.ref)


def test_the_gate_stays_shut_without_a_lease() -> None:
    assert not LeaseTable().hand(LeaseRef("nobody", 1))


def test_the_first_end_wins() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    assert table.end(failed(a))
    assert not table.end(ok(a))
    assert table.take_outcomes() == (failed(a),)
    assert table.counters.late == 1


def test_one_winner_among_many_threads() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    start, wins = threading.Barrier(8), []

    def finish() -> None:
        start.wait()
        wins.append(table.end(ok(a)))

    threads = [threading.Thread(target=finish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == [False] * 7 + [True]


def test_an_ended_attempt_cannot_start() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    table.end(Outcome(a.ref, OutcomeKind.CANCELLED))
    assert not table.hand(a.ref)


def test_two_attempts_of_one_job_are_two_leases() -> None:
    table, first, second = LeaseTable(), job("a", 1), job("a", 2)
    table.register([first, second])
    assert table.hand(first.ref)
    assert table.hand(second.ref)
    assert table.end(ok(first))
    assert table.running() == (second,)


def test_a_replayed_claim_registers_nothing_twice() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    table.hand(a.ref)
    table.register([a])
    assert table.running() == (a,)
    assert table.free_slots(2) == 1
    assert not table.hand(a.ref)


def test_slots_are_counted_until_the_end_not_until_the_answer() -> None:
    table, a, b = LeaseTable(), job("a"), job("b")
    table.register([a, b])
    assert table.free_slots(2) == 0
    assert table.free_slots(1) == 0
    table.end(ok(a))
    assert table.free_slots(2) == 1
    assert table.open == 1


def test_outcomes_leave_in_order_and_come_back_in_order() -> None:
    table = LeaseTable()
    jobs = [job(str(n)) for n in range(5)]
    table.register(jobs)
    for item in jobs:
        table.end(ok(item))
    first = table.take_outcomes(3)
    assert [str(o.ref.job_id) for o in first] == ["0", "1", "2"]
    assert table.unreported() == 2
    table.put_back(first)
    assert [o.ref.job_id for o in table.take_outcomes()] == ["0", "1", "2", "3", "4"]
    assert table.take_outcomes() == ()


def test_age_of_the_first_unsent_outcome_survives_a_lost_reply() -> None:
    clock = Clock()
    table, a = LeaseTable(clock), job("a")
    assert table.oldest_outcome_age(clock.now) == 0
    table.register([a])
    table.end(ok(a))
    clock.now += 0.5
    assert table.oldest_outcome_age(clock.now) == 0.5
    batch = table.take_outcomes()
    assert table.oldest_outcome_age(clock.now) == 0
    clock.now += 1
    table.put_back(batch)
    assert table.oldest_outcome_age(clock.now) == 1.5


def test_a_stale_report_is_counted_and_the_lease_is_gone() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    table.end(ok(a))
    table.settled(table.take_outcomes(), [SettleWord.STALE])
    assert table.live() == ()
    assert table.recent() == ()
    assert (table.counters.stale, table.counters.accepted) == (1, 0)


def test_accepted_outcomes_are_remembered_for_five_seconds() -> None:
    clock = Clock()
    table, a, b = LeaseTable(clock), job("a"), job("b")
    table.register([a, b])
    table.end(ok(a))
    table.settled(table.take_outcomes(), [SettleWord.OK])
    clock.now += 4
    table.end(ok(b))
    table.settled(table.take_outcomes(), [SettleWord.OK])
    assert [settled.outcome for settled in table.recent()] == [ok(a), ok(b)]
    clock.now += 1
    assert [settled.outcome for settled in table.recent()] == [ok(b)]


def test_drain_gives_back_what_has_not_started_newest_first() -> None:
    table = LeaseTable()
    jobs = [job(str(n)) for n in range(4)]
    table.register(jobs)
    table.hand(jobs[0].ref)
    table.end(ok(jobs[1]))
    table.draining = True
    assert table.release_unstarted() == 2
    assert table.release_unstarted() == 0
    released = [o for o in table.take_outcomes() if o.kind is OutcomeKind.RELEASE]
    assert [o.ref.job_id for o in released] == ["3", "2"]
    assert not table.hand(jobs[2].ref)
    assert table.running() == (jobs[0],)
    assert table.free_slots(10) == 0


def test_a_claim_reply_that_arrives_while_draining_is_given_back() -> None:
    table, a, b = LeaseTable(), job("a"), job("b")
    table.draining = True
    table.register([a, b])
    assert not table.startable(a.ref)
    assert [(o.kind, o.ref.job_id) for o in table.take_outcomes()] == [
        (OutcomeKind.RELEASE, "b"),
        (OutcomeKind.RELEASE, "a"),
    ]


def test_nothing_starts_while_draining() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    table.draining = True
    assert not table.hand(a.ref)
    assert table.release_unstarted() == 1


def test_drop_names_the_bodies_to_kill_and_keeps_their_slots() -> None:
    table, running, waiting, ended = LeaseTable(), job("r"), job("w"), job("e")
    table.register([running, waiting, ended])
    table.hand(running.ref)
    table.end(ok(ended))
    assert table.drop([running.ref, waiting.ref, ended.ref, LeaseRef("nobody", 1)]) == (running,)
    assert table.live() == (ended,)
    assert not table.hand(waiting.ref)
    assert table.free_slots(3) == 2, "the body of the lost lease still runs"
    assert not table.end(failed(running)), "nothing is reported for a lease that is not ours"
    assert table.free_slots(3) == 3
    assert table.take_outcomes() == (ok(ended),)
    assert table.counters.dropped == 2


def test_the_flusher_wakes_up_for_an_outcome_that_no_claim_takes_along() -> None:
    table, a = LeaseTable(), job("a")
    table.register([a])
    table.parked = True
    assert not table.wait_for_outcome(0)
    waiting, woke = threading.Event(), []

    def wait() -> None:
        waiting.set()
        woke.append(table.wait_for_outcome(10))

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait(10)
    table.end(ok(a))
    thread.join(10)
    assert woke == [True]


def test_a_live_job_can_be_looked_up() -> None:
    table, a = LeaseTable(), job("a")
    assert table.get(a.ref) is None
    table.register([a])
    assert table.get(a.ref) is a


def test_an_outcome_that_the_store_holds_back_is_sent_again() -> None:
    table, a, b = LeaseTable(), job("a"), job("b")
    table.register([a, b])
    table.end(ok(a))
    table.end(ok(b))
    table.settled(table.take_outcomes(), [SettleWord.HELD, SettleWord.OK])
    assert table.live() == (a,)
    assert table.take_outcomes() == (ok(a),)
