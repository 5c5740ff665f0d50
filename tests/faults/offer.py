"""A producer that offers jobs in every way there is, and keeps account of what it was told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.faults.lossy import Way
from tests.harness import ledger

from tidegate.client.bulk import Foundry, send_many
from tidegate.client.one import send
from tidegate.client.producer import Producer
from tidegate.client.receipt import Receipt
from tidegate.client.request import Call, Options
from tidegate.domain.errors import QueueFull, StoreUnavailable, TidegateError
from tidegate.domain.verdict import Accepted, Duplicate
from tidegate.transport.publish import refused

TASK = "work"


@dataclass(frozen=True, slots=True)
class Told:
    """What a producer learned about one job. maybe: the store was silent, nobody knows whether it has the job."""

    job: str
    status: Literal["accepted", "duplicate", "maybe", "refused"]
    operation_id: str = ""
    error: TidegateError | None = None


def offer(sender: Producer, way: Way, jobs: Sequence[str]) -> list[Told]:
    """Offer jobs through the door that `way` names; one answer each, in order."""
    calls: list[Call[Any]] = [Call(TASK, (job, 0.0), {}, _options(way, job)) for job in jobs]
    if way in (Way.MANY, Way.MANY_KEYED):
        answers: Sequence[Any] = send_many(sender, calls)
    elif way in (Way.STORE, Way.STORE_KEYED):
        answers = _straight(sender, calls)
    else:
        answers = [_one(sender, call) for call in calls]
    return [_told(job, answer) for job, answer in zip(jobs, answers, strict=True)]


def _options(way: Way, job: str) -> Options:
    if way in (Way.KEYED, Way.MANY_KEYED, Way.STORE_KEYED):
        return {"idempotency_key": job}
    return {"operation_id": job} if way is Way.NAMED else {}


def _one(sender: Producer, call: Call[Any]) -> Receipt[Any] | TidegateError:
    try:
        return send(sender, call)
    except TidegateError as error:
        return error


def _straight(sender: Producer, calls: Sequence[Call[Any]]) -> list[Any]:
    foundry = Foundry(sender)
    made = [foundry.job(call) for call in calls]
    try:
        verdicts = sender.fleet.store.enqueue(made)
    except StoreUnavailable as error:
        return [error] * len(made)
    return [refused(verdict, job) or verdict for verdict, job in zip(verdicts, made, strict=True)]


def _told(job: str, answer: Any) -> Told:
    match answer:
        case Receipt():
            return Told(job, answer.status, answer.operation_id)
        case Accepted(operation_id):
            return Told(job, "accepted", operation_id)
        case Duplicate(operation_id):
            return Told(job, "duplicate", operation_id)
        case StoreUnavailable():
            return Told(job, "maybe" if answer.maybe_done else "refused", error=answer)
        case QueueFull():
            return Told(job, "refused", error=answer)
    raise AssertionError(f"{job}: an answer nobody expects: {answer!r}")


@dataclass(slots=True)
class Account:
    """All that producers were told. The ledger hears of it too, so that the verdict needs nothing from here."""

    accepted: dict[str, str] = field(default_factory=dict)  #: job -> operation
    maybe: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def write(self, told: Sequence[Told]) -> None:
        """Of jobs that were offered for the first time: nobody may be told that the store knew them."""
        known = [one for one in told if one.status == "duplicate"]
        assert known == [], f"offered for the first time, and the store says it knew them: {known}"
        for one in told:
            if one.status == "accepted":
                self._accept(one)
            elif one.status == "maybe":
                self.maybe.add(one.job)
            else:
                self.refused.add(one.job)
                ledger.refused(one.job)

    def write_again(self, told: Sequence[Told]) -> None:
        """Of jobs with a key that were offered once more: the store says what is true, and knows one job."""
        for one in told:
            assert one.status in ("accepted", "duplicate"), one
            if one.job in self.maybe:
                self.maybe.discard(one.job)
                self._accept(one)
            else:
                assert (one.status, one.operation_id) == ("duplicate", self.accepted[one.job]), one

    def _accept(self, one: Told) -> None:
        self.accepted[one.job] = one.operation_id
        ledger.accepted(one.job)
