"""Replies of the scripts, as values. A script that answers something unexpected is a defect and says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import LeaseRef, NewJob, Pressure, SettleWord
from tidegate.domain.states import State
from tidegate.domain.verdict import Accepted, Closed, Conflict, Duplicate, Full, TooCostly, Verdict
from tidegate.store import record
from tidegate.store.call import ClaimReply, ExtendReply
from tidegate.store.keyspace import decode, decode_resource

_WORDS = {word.value: word for word in SettleWord}
_PRESSURES = (Pressure.GREEN, Pressure.YELLOW, Pressure.RED)


@dataclass(frozen=True, slots=True)
class Held:
    """The server came back; a keyed enqueue must wait until its workers have said what they know."""

    milliseconds: int


def checked(raw: Any, url: str) -> Any:
    """The reply itself; StoreRefused for what no command should ever meet."""
    if isinstance(raw, Exception):
        raise StoreRefused(
            url, f"it refuses a command: {raw}", "see the server's log; under full memory free some"
        )
    if raw[0] == b"lost":
        raise StoreRefused(
            url,
            "the fleet's records are gone (FLUSHALL, or an empty server in its place)",
            "restart the workers to begin anew, or restore the data first",
        )
    if raw[0] == b"old":
        raise StoreRefused(
            url, "it has answered a later request of this connection", "report this as a defect"
        )
    return raw


def rows(raw: Any, word: bytes, url: str) -> Sequence[Any]:
    """The list behind the reply word."""
    answer: Sequence[Any] = checked(raw, url)
    assert answer[0] == word, answer[0]
    found: Sequence[Any] = answer[1]
    return found


def verdicts(raw: Any, url: str) -> list[str]:
    """The verdicts of the enqueue script, a line each."""
    text: bytes = checked(raw, url)[1]
    return text.decode().split("\n")


def verdict(job: NewJob, text: str) -> Verdict | Held:
    """One verdict of the enqueue script."""
    match text.split(" "):
        case "accepted", position, pressure:
            return Accepted(job.operation_id, int(position), _PRESSURES[int(pressure)])
        case "duplicate", operation, state:
            return Duplicate(decode(operation), State(state))
        case "conflict", operation:
            return Conflict(decode(operation))
        case "full", scope, depth, limit, retry_after:
            return Full(decode_resource(scope), int(depth), int(limit), int(retry_after) / 1000)
        case ["closed"]:
            return Closed(job.queue)
        case "never_runnable", resource, cost, capacity:
            return TooCostly(decode_resource(resource), int(cost), int(capacity))
        case "held", wait:
            return Held(int(wait))
    raise AssertionError(text)


def words(raw: Any, url: str) -> list[SettleWord]:
    """Words of settle and release."""
    return [SettleWord(word.decode()) for word in rows(raw, b"settled", url)]


def extended(raw: Sequence[Any]) -> ExtendReply:
    """Reply of extend."""
    lost = tuple(LeaseRef.parse(ref.decode()) for ref in raw[1])
    return ExtendReply(lost, held=int(raw[2]) > 0, known=bool(raw[3]))


def claim(raw: Any, url: str) -> ClaimReply:
    """Reply of claim."""
    text: bytes = raw if isinstance(raw, bytes) else checked(raw, url)
    end = text.find(b"\n")
    numbers = text[:end] if end > 0 else text
    _, more, wait_ms, held_ms, known, *settled = numbers.decode().split(" ")
    jobs = []
    while end > 0:
        at = text.index(b"\n", end + 1)
        job_id, size = text[end + 1 : at].split(b" ")
        end = at + 1 + int(size)
        jobs.append(record.claimed(job_id, text[at + 1 : end]))
        if end == len(text):
            break
    return ClaimReply(
        jobs=tuple(jobs),
        words=tuple(_WORDS[word] for word in settled),
        more=more == "1",
        wait_ms=int(wait_ms),
        held_ms=int(held_ms),
        known=known == "1",
    )
