"""The conversation of one worker process with the store about new jobs: claim, and wait for a wake.

    idle ──claim──► asked ──jobs, or more to come──► idle
                      └──nothing to do──► idle ──wait──► parked ──wake, or time is up──► idle

One request at a time on one connection; every reply leads to the next step, nothing polls. Outcomes ride on the
next claim. An unanswered claim is asked again with the same request id on the next connection, so a lost reply
loses neither leases nor outcomes. The loop outlives channels and connections; it never blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from tidegate.domain.errors import StoreRefused
from tidegate.domain.job import ClaimedJob, Outcome
from tidegate.store import ClaimReply, ClaimRequest
from tidegate.store.errors import ResponseError
from tidegate.store.line import packed
from tidegate.transport.binding import Desk, LeaseBook

logger = logging.getLogger(__name__)

#: jobs of one claim at most (the store's bound on the time of one script)
MOST = 16

#: outcomes that ride on one claim at most
RIDERS = 32

#: ms between two claims while the store holds all jobs back after a restart, or does not know this worker yet
HELD_WAIT_MS = 100

#: seconds to leave a server alone that refuses claims (full memory, read only): doubled up to the second figure
BACKOFF = (0.2, 1.0)


_BOOTTIME: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Link(Protocol):
    """redis-py's connection, as far as it is used here."""

    run_id: str

    def send_packed_command(self, command: list[bytes], check_health: bool = True) -> None: ...
    def read_response(self) -> Any: ...


class ClaimLoop:
    """Not thread-safe: the main loop of the worker drives it, through whatever channel consumes now."""

    def __init__(
        self,
        desk: Desk,
        monotonic: Callable[[], float] = time.monotonic,
        boottime_ns: Callable[[], int] = lambda: time.clock_gettime_ns(_BOOTTIME),
    ) -> None:
        self._desk = desk
        self._monotonic, self._boottime_ns = monotonic, boottime_ns
        self._asked = False  # a claim is unanswered, whatever became of its connection
        self._riding: tuple[Outcome, ...] = ()
        self._slots = 0
        self._sent_ns = 0
        self._wait_ms = 0  # > 0: the next step is to wait for a wake
        self._refused = 0
        self._not_before = 0.0

    @property
    def leases(self) -> LeaseBook:
        return self._desk.leases

    @property
    def in_flight(self) -> bool:
        """True while leases may be ours that we do not know of yet."""
        return self._asked

    def free_slots(self, total: int) -> int:
        return self._desk.leases.free_slots(total)

    def start(self, link: Link, queues: tuple[str, ...], total: int) -> bool:
        """Send the next request, if it is time for one. False if nothing was sent; errors of the connection pass."""
        if self._monotonic() < self._not_before or not self._desk.may_claim():
            return False
        if self._asked:
            command = self._desk.claims.replay(link.run_id)
            if command is not None:
                link.send_packed_command([packed(command)], check_health=False)
                return True
            self._forget()
        if self._wait_ms > 0 and not self.leases.unreported():
            self.leases.parked = True
            command = self._desk.claims.wait_command(queues, self._wait_ms)
            link.send_packed_command([packed(command)], check_health=False)
            self._wait_ms = 0
            return True
        self._claim(link, queues, total)
        return True

    def _claim(self, link: Link, queues: tuple[str, ...], total: int) -> None:
        self.leases.parked = False
        self._wait_ms = 0
        self._slots = min(MOST, self.free_slots(total))
        self._riding = self.leases.take_outcomes(RIDERS)
        request = ClaimRequest(self._desk.worker_id, queues, self._slots, self._riding)
        command = self._desk.claims.command(request, link.run_id)
        self._asked = True
        self._sent_ns = self._boottime_ns()
        link.send_packed_command([packed(command)], check_health=False)

    def read(self, link: Link) -> tuple[ClaimedJob, ...]:
        """Take the answer: the new jobs, all of them registered as ours. Errors of the connection pass.

        A refusal of the server (full memory, read only, an unknown script) never passes: it leads to a pause.
        """
        self.leases.parked = False
        try:
            raw = link.read_response()
        except ResponseError as error:
            if not self._desk.claims.is_unknown(error):  # else the replay carries the whole script
                self._refuse(error)
            return ()
        if not self._asked:
            return ()  # a wake, or the end of the wait: claim now
        try:
            reply = self._desk.claims.parse(raw)
        except StoreRefused as error:
            self._refuse(error)
            return ()
        received_ns = self._boottime_ns()
        self._asked, riding, self._riding = False, self._riding, ()
        self._refused = 0
        self.leases.register(reply.jobs, self._sent_ns)
        self.leases.settled(riding, reply.words)
        self._wait_ms = self._next_wait(reply)
        self._desk.on_reply(reply, self._sent_ns, received_ns)
        return reply.jobs

    def _next_wait(self, reply: ClaimReply) -> int:
        if reply.held_ms > 0 or not reply.known:
            return min(max(reply.held_ms, 1), HELD_WAIT_MS) if reply.known else HELD_WAIT_MS
        if reply.more or len(reply.jobs) >= self._slots:
            return 0
        return reply.wait_ms

    def _refuse(self, error: Exception) -> None:
        least, most = BACKOFF
        pause = min(most, least * 2**self._refused)
        self._refused += 1
        if self._refused == 1:
            logger.warning("the store refuses claims (%s); trying again, every second at the latest", error)
        self._not_before = self._monotonic() + pause
        if self._asked:
            self.leases.put_back(self._desk.claims.abandon())
            self._forget()
        self.leases.parked = True  # outcomes cannot ride: the flusher reports them, which full memory allows

    def _forget(self) -> None:
        self._asked, self._riding, self._slots = False, (), 0
