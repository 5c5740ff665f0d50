"""Acknowledgement and flow control of a channel that claims: no I/O, and slots counted per process.

kombu's own QoS writes every delivery into `unacked` and counts what one channel has delivered. Here a delivery is
a lease that the store already knows, and leases belong to the process: a new channel after a reconnect starts with
the slots that are really free.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from kombu.transport import virtual

from tidegate.domain.job import LeaseRef, Outcome, OutcomeKind
from tidegate.domain.states import Reason

if TYPE_CHECKING:
    from tidegate.transport.channel import Channel

logger = logging.getLogger(__name__)

#: leases that a process may hold when Celery's prefetching is switched off (multiplier 0 means "no limit" there)
UNLIMITED = 16


class LeaseQoS(virtual.QoS):
    """QoS of every channel of the transport; one that only carries replies and events has kombu's virtual one."""

    #: un-acknowledged jobs are the store's business, and the heartbeat's
    restore_at_shutdown = False

    channel: Channel

    def can_consume(self) -> bool:
        claims = self.channel.claim_loop
        if claims is None:
            return bool(super().can_consume())
        # a claim whose reply is under way must be read, even if the worker began to drain meanwhile
        return claims.in_flight or claims.free_slots(self.total) > 0

    def can_consume_max_estimate(self) -> int | None:
        claims = self.channel.claim_loop
        if claims is None:
            estimate: int | None = super().can_consume_max_estimate()
            return estimate
        return claims.free_slots(self.total)

    @property
    def total(self) -> int:
        """Leases that this process may hold: concurrency times the prefetch multiplier."""
        return self.prefetch_count or UNLIMITED

    def ack(self, delivery_tag: str) -> None:
        if self.channel.claim_loop is None:
            super().ack(delivery_tag)
        else:
            self._end(delivery_tag, "acknowledged")

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Of a job: never requeues; the store gives a job back, or to the authority."""
        if self.channel.claim_loop is None:
            super().reject(delivery_tag, requeue=requeue)
        else:
            self._end(delivery_tag, "rejected")

    def append(self, message: Any, delivery_tag: str) -> None:
        # kombu keeps deliveries to restore them; a job is in the store, and the dictionary would only grow
        if self.channel.claim_loop is None:
            super().append(message, delivery_tag)

    def _end(self, delivery_tag: str, verb: str) -> None:
        """The net under all known ends: a message that somebody settled without naming how it ended."""
        claims = self.channel.claim_loop
        assert claims is not None
        try:
            ref = LeaseRef.parse(delivery_tag)
        except ValueError:
            return
        if not claims.leases.unfinished(ref):
            return
        detail = json.dumps({"class": "", "message": f"the message was {verb} without an outcome"})
        if claims.leases.end(Outcome(ref, OutcomeKind.FAILED, Reason.INVALID_MESSAGE, detail)):
            logger.error("job %s was %s without an outcome; recorded as failed", ref.job_id, verb)
