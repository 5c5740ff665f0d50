"""The conversation about new jobs, step by step, with a link and a desk that write down what they hear.

Against a real server, with real faults, it is tested in tests/integration/worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import ClaimedJob, Effect, LeaseRef, Outcome, OutcomeKind, SettleWord
from tidegate.store import ClaimReply, ClaimRequest
from tidegate.store.errors import ResponseError
from tidegate.store.line import packed
from tidegate.transport.claim import ClaimLoop
from tidegate.worker.lease_table import LeaseTable

QUEUES = ("default",)


def job(name: str) -> ClaimedJob:
    return ClaimedJob(
        ref=LeaseRef(name, 1),
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
        record=bytes(68),
    )


class Claims:
    """The shape of a ClaimChannel: commands name what they are, replies are handed through."""

    def __init__(self) -> None:
        self.open: ClaimRequest | None = None
        self.unknown = 0

    def command(self, request: ClaimRequest, run_id: str) -> tuple[Any, ...]:
        self.open = request
        return "claim", request.slots, run_id

    def replay(self, run_id: str) -> tuple[Any, ...] | None:
        return None if self.open is None else ("replay", self.open.slots, run_id)

    def wait_command(self, queues: tuple[str, ...], wait_ms: int) -> tuple[Any, ...]:
        return "wait", wait_ms

    def parse(self, raw: Any) -> ClaimReply:
        if isinstance(raw, Exception):
            raise raw
        self.open = None
        assert isinstance(raw, ClaimReply)
        return raw

    def is_unknown(self, error: Exception) -> bool:
        self.unknown += "unknown" in str(error)
        return "unknown" in str(error)

    def abandon(self) -> tuple[Outcome, ...]:
        request, self.open = self.open, None
        return request.outcomes if request else ()


class Desk:
    worker_id = "w"

    def __init__(self) -> None:
        self.claims: Any = Claims()
        self.leases = LeaseTable()
        self.known = True
        self.replies: list[ClaimReply] = []

    def may_claim(self) -> bool:
        return self.known

    def server_now_ms(self) -> int:
        return 0

    def on_reply(self, reply: ClaimReply, sent_ns: int, received_ns: int) -> None:
        self.replies.append(reply)


class Link:
    """A connection: `sent` is what was sent, `answers` what the server will say."""

    run_id = "r1"

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.answers: Iterator[Any] = iter(())

    def send_packed_command(self, command: list[bytes], check_health: bool = True) -> None:
        assert not check_health, "a PING would wait for its answer in the main loop"
        words = b"".join(command).split(b"\r\n")[2::2]
        self.sent.append(tuple(int(word) if word.isdigit() else word.decode() for word in words))

    def read_response(self) -> Any:
        answer = next(self.answers)
        if isinstance(answer, Exception) and not isinstance(answer, StoreRefused):
            raise answer
        return answer


class Table:
    """One loop with all its surroundings."""

    def __init__(self, total: int = 2) -> None:
        self.desk, self.link, self.now, self.total = Desk(), Link(), 0.0, total
        self.loop = ClaimLoop(self.desk, lambda: self.now, lambda: int(self.now * 1e9))

    @property
    def leases(self) -> LeaseTable:
        return self.desk.leases

    def start(self) -> bool:
        return self.loop.start(self.link, QUEUES, self.total)

    def read(self, answer: Any) -> tuple[ClaimedJob, ...]:
        self.link.answers = iter([answer])
        return self.loop.read(self.link)

    def turn(self, answer: Any) -> tuple[ClaimedJob, ...]:
        assert self.start()
        return self.read(answer)


@pytest.fixture
def table() -> Table:
    return Table()


def test_a_full_answer_leads_to_the_next_claim_at_once(table: Table) -> None:
    assert table.turn(ClaimReply(jobs=(job("a"), job("b")), wait_ms=900)) == (job("a"), job("b"))
    assert len(table.leases.live()) == 2
    table.leases.end(Outcome(LeaseRef("a", 1), OutcomeKind.OK))
    table.start()
    assert table.link.sent == [("claim", 2, "r1"), ("claim", 1, "r1")]


def parked(table: Table) -> tuple[bool, bool]:
    return table.leases.parked, table.loop.in_flight


def test_nothing_to_do_leads_to_a_wait_and_the_wait_to_a_claim(table: Table) -> None:
    table.turn(ClaimReply(wait_ms=700))
    assert parked(table) == (False, False)
    table.start()
    assert parked(table) == (True, False), "a parked worker may be closed at any time"
    assert table.read(None) == ()
    assert parked(table) == (False, False)
    table.start()
    assert [sent[:2] for sent in table.link.sent] == [("claim", 2), ("wait", 700), ("claim", 2)]


def test_more_means_claim_again(table: Table) -> None:
    table.turn(ClaimReply(more=True, wait_ms=700))
    table.start()
    assert [sent[0] for sent in table.link.sent] == ["claim", "claim"]


def test_outcomes_ride_and_are_settled_by_the_answer(table: Table) -> None:
    table.turn(ClaimReply(jobs=(job("a"), job("b"))))
    table.leases.end(Outcome(LeaseRef("a", 1), OutcomeKind.OK))
    table.start()
    assert [outcome.ref.job_id for outcome in table.desk.claims.open.outcomes] == ["a"]
    table.read(ClaimReply(words=(SettleWord.OK,)))
    assert [job.ref.job_id for job in table.leases.live()] == ["b"]
    assert table.leases.counters.accepted == 1


def test_an_end_while_nothing_is_to_do_is_reported_before_the_wait(table: Table) -> None:
    table.turn(ClaimReply(jobs=(job("a"),), wait_ms=700))
    table.leases.end(Outcome(LeaseRef("a", 1), OutcomeKind.OK))
    table.start()
    assert [sent[0] for sent in table.link.sent] == ["claim", "claim"]


def test_a_lost_answer_is_asked_for_again_on_the_next_connection(table: Table) -> None:
    table.start()
    with pytest.raises(ConnectionError):
        table.read(ConnectionError("gone"))
    assert table.loop.in_flight
    table.link = Link()
    table.link.run_id = "r2"
    assert table.turn(ClaimReply(jobs=(job("a"),))) == (job("a"),)
    assert table.link.sent == [("replay", 2, "r2")]
    assert not table.loop.in_flight


def test_a_wait_that_was_cut_is_just_over(table: Table) -> None:
    table.turn(ClaimReply(wait_ms=700))
    table.start()
    with pytest.raises(ConnectionError):
        table.read(ConnectionError("gone"))
    table.link = Link()
    table.start()
    assert table.link.sent[0][0] == "claim"


def test_an_unknown_script_is_sent_whole(table: Table) -> None:
    assert table.turn(ResponseError("unknown function")) == ()
    assert table.desk.claims.unknown == 1
    table.start()
    assert [sent[0] for sent in table.link.sent] == ["claim", "replay"]


@pytest.mark.parametrize("error", [ResponseError("OOM"), StoreRefused("url", "what", "remedy")])
def test_a_refusal_puts_outcomes_back_and_pauses(table: Table, error: Exception) -> None:
    table.turn(ClaimReply(jobs=(job("a"), job("b"))))
    table.leases.end(Outcome(LeaseRef("a", 1), OutcomeKind.OK))
    assert table.turn(error) == ()
    assert table.leases.unreported() == 1
    assert table.leases.parked, "the flusher must report what cannot ride"
    assert not table.loop.in_flight
    assert not table.start()
    table.now += 0.2
    assert table.start()


def test_pauses_grow_to_a_second_and_start_again(table: Table) -> None:
    pauses = []
    for _ in range(6):
        table.turn(ResponseError("READONLY"))
        before = table.now
        while not table.loop.start(Link(), QUEUES, 0):
            table.now = round(table.now + 0.1, 1)
        pauses.append(round(table.now - before, 1))
        table.desk.claims.abandon()
        table.loop._forget()
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0, 1.0], abs=0.11)
    table.turn(ClaimReply(more=True))
    table.turn(ResponseError("OOM"))
    table.now += 0.2
    assert table.start()


def test_a_worker_that_the_store_does_not_know_yet_says_nothing(table: Table) -> None:
    table.desk.known = False
    assert not table.start()
    assert table.link.sent == []


@pytest.mark.parametrize(
    ("reply", "wait"),
    [
        (ClaimReply(held_ms=30, wait_ms=1000), 30),
        (ClaimReply(held_ms=15_000, wait_ms=1000), 100),
        (ClaimReply(known=False, wait_ms=1000), 100),
        (ClaimReply(held_ms=15_000, known=False), 100),
    ],
)
def test_while_the_store_holds_jobs_back_it_is_asked_now_and_then(
    table: Table, reply: ClaimReply, wait: int
) -> None:
    table.turn(reply)
    assert table.desk.replies == [reply]
    table.start()
    assert table.link.sent[-1] == ("wait", wait)


def test_never_more_than_sixteen_at_once() -> None:
    table = Table(total=40)
    table.start()
    assert table.link.sent == [("claim", 16, "r1")]


def test_a_replayed_answer_counts_from_the_first_time_it_was_asked(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(table.leases, "register", lambda jobs, sent_ns: seen.append(sent_ns))
    table.now = 5
    table.start()
    table.now = 9
    table.turn(ClaimReply())
    assert seen == [5_000_000_000]


def test_commands_are_packed_as_the_server_reads_them() -> None:
    assert (
        packed(("é", b"\x00\r\n", 12, ""))
        == b"*4\r\n$2\r\n\xc3\xa9\r\n$3\r\n\x00\r\n\r\n$2\r\n12\r\n$0\r\n\r\n"
    )
