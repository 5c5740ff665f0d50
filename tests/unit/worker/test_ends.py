"""Every way in which an attempt can end, in the words of the store."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from billiard.einfo import ExceptionInfo
from billiard.exceptions import SoftTimeLimitExceeded, Terminated, TimeLimitExceeded, WorkerLostError
from celery.app.task import Context
from celery.exceptions import Ignore, Reject, Retry
from celery.utils.serialization import UnpickleableExceptionWrapper
from kombu.exceptions import ContentDisallowed, DecodeError

from tidegate.domain.job import LeaseRef, Outcome, OutcomeKind
from tidegate.domain.states import Reason
from tidegate.worker import ends
from tidegate.worker.ends import Ending

REF = LeaseRef("7", 4294967297)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ValueError("x"), OutcomeKind.FAILED, Reason.ERROR),
        (Reject("x", requeue=True), OutcomeKind.FAILED, Reason.REJECTED),
        (Ignore(), OutcomeKind.OK, Reason.IGNORED),
        (SoftTimeLimitExceeded(), OutcomeKind.FAILED, Reason.SOFT_TIMEOUT),
        (TimeLimitExceeded(3), OutcomeKind.FAILED, Reason.ATTEMPT_TIMEOUT),
        (Terminated(-15), OutcomeKind.CANCELLED, Reason.TERMINATED),
        (WorkerLostError("x"), OutcomeKind.FAILED, Reason.WORKER_LOST),
        (SystemExit(1), OutcomeKind.FAILED, Reason.WORKER_LOST),
        (KeyboardInterrupt(), OutcomeKind.FAILED, Reason.WORKER_LOST),
        (MemoryError(), OutcomeKind.FAILED, Reason.MEMORY),
        (Retry(exc=ValueError("x")), OutcomeKind.FAILED, Reason.RETRY_REQUESTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_kinds_and_reasons(error: BaseException, kind: OutcomeKind, reason: Reason) -> None:
    ending = ends.of_exception(error)
    assert (ending.kind, ending.reason) == (kind, reason)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (10, 1_010_000),
        (0.25, 1_000_250),
        (None, 0),
        (0, 0),
        (-5, 0),
        (True, 0),
        (datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000),
        (datetime(2026, 1, 1, 8, tzinfo=timezone(timedelta(hours=8))), 1_767_225_600_000),
        (datetime(2026, 1, 1), 1_767_225_600_000),
    ],
)
def test_a_retry_says_when_and_why(when: object, expected: int) -> None:
    ending = ends.of_exception(Retry(exc=KeyError("gone"), when=when), "tb", now_ms=1_000_000)
    assert ending.not_before_ms == expected
    assert ending.detail["class"] == "KeyError"
    assert ending.detail.get("not_before_ms", 0) == expected


class Throttled(Exception):
    retry_after = 12.5


class Broken(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_what_the_authority_needs_is_in_the_detail() -> None:
    assert ends.described(Throttled("slow down")) == {
        "class": f"{__name__}.Throttled",
        "message": "slow down",
        "retry_after": 12.5,
    }
    refused = ends.described(ConnectionRefusedError(111, "no"), "Traceback")
    assert (refused["error_code"], refused["traceback"]) == ("ECONNREFUSED", "Traceback")
    assert "error_code" not in ends.described(OSError("no number"))
    assert ends.described(Broken())["message"] == "(its message raised RuntimeError)"


def test_an_exception_that_could_not_be_pickled_keeps_its_name() -> None:
    wrapper = UnpickleableExceptionWrapper("acme.errors", "Odd", ("x",), "odd x")
    assert ends.of_exception(wrapper).detail["class"] == "acme.errors.Odd"


def test_billiards_parcel_is_unwrapped() -> None:
    try:
        raise ValueError("inside")
    except ValueError:
        parcel = ExceptionInfo().exception
    assert type(parcel).__name__ == "ExceptionWithTraceback"
    assert ends.of_exception(parcel).detail["class"] == "ValueError"


def test_reports_have_a_bound() -> None:
    ending = ends.of_exception(ValueError("m" * 10_000), "t" * 50_000 + "the end")
    assert len(ending.detail["message"]) == ends.MESSAGE_LIMIT
    assert len(ending.detail["traceback"]) == ends.TRACEBACK_LIMIT
    assert ending.detail["traceback"].endswith("the end")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DecodeError("x"), Reason.UNDECODABLE),
        (ContentDisallowed("x"), Reason.UNDECODABLE),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), Reason.UNDECODABLE),
        (ValueError("x"), Reason.INVALID_MESSAGE),
        (KeyError("id"), Reason.INVALID_MESSAGE),
    ],
)
def test_undeliverable(error: Exception, reason: Reason) -> None:
    ending = ends.undeliverable(error)
    assert (ending.kind, ending.reason) == (OutcomeKind.UNDELIVERABLE, reason)


def test_an_outcome_carries_the_detail_as_json() -> None:
    assert ends.OK.outcome(REF) == Outcome(REF, OutcomeKind.OK)
    outcome = Ending(OutcomeKind.FAILED, Reason.ERROR, {"class": "Ü"}, 5).outcome(REF)
    assert outcome.detail.isascii()
    assert json.loads(outcome.detail) == {"class": "Ü"}
    assert outcome.not_before_ms == 5


def test_a_request_is_an_attempt_if_its_header_names_the_lease() -> None:
    assert ends.attempt_ref(Context({"tidegate": {"job_id": "7", "fence": 4294967297}})) == REF
    assert ends.attempt_ref(Context({"tidegate": {"tenant": "acme"}})) is None
    assert ends.attempt_ref(Context({"id": "x"})) is None
    assert ends.attempt_ref(Context({"tidegate": "text"})) is None
    assert ends.attempt_ref(None) is None
