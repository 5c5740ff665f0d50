"""The stored record of a job, read from outside the scripts (layout: lua/lib/job.lua)."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from functools import lru_cache

from tidegate.domain.decision import FailedAttempt
from tidegate.domain.errors import InvalidJob
from tidegate.domain.job import (
    HEADER_BYTES,
    MOST_RESOURCES,
    ClaimedJob,
    Cost,
    Effect,
    JobView,
    LeaseRef,
    NewJob,
)
from tidegate.domain.states import Reason, State
from tidegate.store.call import DeadJob, Death, Failure
from tidegate.store.keyspace import budget, decode, digest, encode, encode_resource, lane

_HEADER = struct.Struct(">BBIHBBQQiQQQIIIH")
assert _HEADER.size == HEADER_BYTES

_FAR = (1 << 48) - 1  #: ms; no instant or delay is later (the year 10889)
_LONGEST = (1 << 32) - 1  #: ms; a longer timeout counts as this (49 days): the record has four bytes for it
_MOST_WORDS = (1 << 16) - 1  #: bytes of all names of a job, encoded

AT_MOST_ONCE, CONTINUATION, KNOWN_OPERATION = 1, 2, 4
GENERATION = 2  #: flags of a stored record, divided by this: how often it was replayed


@lru_cache(maxsize=4096)
def _place(
    queue: str, tenant: str, resources: tuple[str, ...], budgets: tuple[tuple[str, str], ...]
) -> tuple[str, str, tuple[str, ...]]:
    """(queue tenant lane, resources, budgets) as words; few of them serve many jobs."""
    for name in resources:
        if name.partition(":")[0] in _NOT_NAMED:
            raise InvalidJob(repr(name), "resources", "a kind other than queue, tenant and cost")
    words = sorted({encode_resource(name) for name in resources})
    costs = tuple(budget(*each) for each in budgets)
    if len(words) + len(costs) > MOST_RESOURCES:
        raise InvalidJob(
            f"{len(words) + len(costs)} of them", "resources", f"at most {MOST_RESOURCES}, budgets counted"
        )
    place = (encode(queue), encode(tenant))
    return (
        f"{place[0]} {place[1]} {lane(*place, [*words, *costs])}",
        "".join(f" {word}" for word in words),
        costs,
    )


#: kinds of resources that no job names: it has its queue and its tenant, and its costs name the budgets
_NOT_NAMED = ("queue", "tenant", "cost")
_MOST_UNITS = 10**9  #: of one cost: its micro-units stay exact in a double


def _costs(costs: tuple[Cost, ...]) -> dict[tuple[str, str], int]:
    """Units of each budget, in the order of their names. Raises InvalidJob."""
    found: dict[tuple[str, str], int] = {}
    for cost in sorted(costs):
        name = (cost.dependency, cost.unit)
        found[name] = found.get(name, 0) + cost.units
        if not 0 <= cost.units <= found[name] <= _MOST_UNITS:
            raise InvalidJob(f"{cost.units} {cost.unit}", "cost", f"whole units from 0 to {_MOST_UNITS:,}")
    return found


def enqueue_arguments(job: NewJob) -> tuple[str, bytes]:
    """The two arguments that the enqueue script takes for one job: numbers and words, and the body.

    Raises InvalidJob for what the record cannot hold: the script must never stop in the middle of a batch.
    """
    costs = _costs(job.costs) if job.costs else {}
    place, resources, budgets = _place(job.queue, job.tenant, job.resources, tuple(costs))
    for word, units in zip(budgets, costs.values(), strict=True):
        resources += f" {word}={units}"
    key, body_hash = "-", "-"
    if job.idempotency_key is not None:
        key = digest(job.tenant, job.task, job.idempotency_key)
        body_hash = encode(job.body_hash) if job.body_hash else _digest(job.envelope)
    flags = (
        (AT_MOST_ONCE if job.effect is Effect.AT_MOST_ONCE else 0)
        + (CONTINUATION if job.continuation else 0)
        + (KNOWN_OPERATION if job.known_operation else 0)
    )
    times = (job.delay_ms, job.queue_timeout_ms, job.attempt_timeout_ms, job.deadline_ms)
    if not 0 <= min(times) <= max(times) <= _FAR:
        raise InvalidJob(f"times of {times} ms", "job", f"whole milliseconds from 0 to {_FAR}")
    numbers = f"{job.delay_ms:d} {min(times[1], _LONGEST):d} {min(times[2], _LONGEST):d} {job.deadline_ms:d}"
    name = f"{encode(job.operation_id)} {encode(job.step)} {key} {body_hash}"
    words = f"{place} {name} {encode(job.task)} {encode(job.task_id)}{resources}"
    if len(words) > _MOST_WORDS:
        raise InvalidJob(f"{len(words)} bytes of names", "job", f"at most {_MOST_WORDS}")
    return f"{numbers} {job.priority.value} {flags} {words}", job.envelope


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _split(record: bytes) -> tuple[tuple[int, ...], list[str], bytes]:
    fields = _HEADER.unpack_from(record)
    end = HEADER_BYTES + fields[15]
    return fields, record[HEADER_BYTES:end].decode("ascii").split(" "), record[end:]


def claimed(job_id: bytes, record: bytes) -> ClaimedJob:
    """A job as the claim script hands it out."""
    (
        (
            _,
            flags,
            attempt,
            charged,
            crashes,
            _,
            fence,
            eligible,
            _,
            created,
            started,
            deadline,
            _,
            timeout,
            _,
            _,
        ),
        words,
        body,
    ) = _split(record)
    return ClaimedJob(
        ref=LeaseRef(job_id.decode(), fence),
        queue=decode(words[0]),
        tenant=decode(words[1]),
        operation_id=decode(words[3]),
        step=decode(words[4]),
        task=decode(words[7]),
        task_id=decode(words[8]),
        attempt=attempt,
        charged=charged,
        crashes=crashes,
        created_ms=created,
        eligible_ms=eligible,
        claimed_ms=started,
        deadline_ms=deadline,
        attempt_timeout_ms=timeout,
        effect=Effect.AT_MOST_ONCE if flags & AT_MOST_ONCE else Effect.IDEMPOTENT,
        envelope=body,
        record=record,
    )


def view(job_id: str, record: bytes, error: str, tries: Sequence[bytes] = ()) -> JobView:
    """A job as a person sees it; `error`: reason of its last failure, ms of its first, JSON detail of the last."""
    (state, flags, attempt, charged, crashes, _, _, eligible, _, created, _, deadline, *_), words, body = (
        _split(record)
    )
    reason, _, detail = (*error.split(" ", 2), "", "", "")[:3]
    return JobView(
        job_id=job_id,
        operation_id=decode(words[3]),
        step=decode(words[4]),
        queue=decode(words[0]),
        tenant=decode(words[1]),
        task=decode(words[7]),
        task_id=decode(words[8]),
        state=State(chr(state)),
        attempt=attempt,
        charged=charged,
        crashes=crashes,
        created_ms=created,
        eligible_ms=eligible,
        deadline_ms=deadline,
        reason=reason,
        detail=detail,
        envelope=body,
        generation=flags // GENERATION,
        tries=tuple(json.loads(row.decode("utf-8", "replace")) for row in tries),
    )


def death(job_id: str, died_ms: int, head: bytes, reason: str) -> Death:
    """A dead letter without its body; head: the record as far as that."""
    fields, words, _ = _split(head)
    return Death(
        job_id=job_id,
        generation=fields[1] // GENERATION,
        operation_id=decode(words[3]),
        step=decode(words[4]),
        queue=decode(words[0]),
        tenant=decode(words[1]),
        task=decode(words[7]),
        reason=reason,
        died_ms=died_ms,
        deadline_ms=fields[11],
    )


def dead_job(job_id: str, head: bytes) -> DeadJob:
    """A dead job whose result is still to be written; head: the record without its body."""
    fields, words, _ = _split(head)
    return DeadJob(
        job_id=job_id,
        operation_id=decode(words[3]),
        step=decode(words[4]),
        queue=decode(words[0]),
        tenant=decode(words[1]),
        generation=fields[1] // GENERATION,
    )


def failure(job_id: str, head: bytes, error: str) -> Failure:
    """A failed attempt as the authority judges it; head: the record without its body."""
    fields, words, _ = _split(head)
    _, flags, _, charged, crashes, _, fence, _, _, created, _, deadline, *_ = fields
    reason, first, detail = error.split(" ", 2)
    told = json.loads(detail or "{}")
    return Failure(
        ref=LeaseRef(job_id, fence),
        task=decode(words[7]),
        detail=told,
        attempt=FailedAttempt(
            reason=Reason(reason),
            effect=Effect.AT_MOST_ONCE if flags & AT_MOST_ONCE else Effect.IDEMPOTENT,
            charged=charged,
            crashes=crashes,
            created_ms=created,
            first_failed_ms=int(first),
            deadline_ms=deadline,
            not_before_ms=told.get("not_before_ms", 0),
            again=told.get("requeue"),
        ),
    )
