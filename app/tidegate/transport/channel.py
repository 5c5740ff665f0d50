"""kombu's Redis channel, with the queues of jobs taken over by the store.

A message for a job goes through the enqueue script, a consumer of a queue of jobs claims. Replies, remote control
and events of Celery stay with kombu's own lists and channels, under a prefix of the fleet. No policy is here.
"""

from __future__ import annotations

import functools
import json
import logging
from time import monotonic
from typing import Any

from kombu.transport import redis as kombu_redis
from kombu.transport import virtual
from kombu.transport.virtual.base import queue_declare_ok_t

from tidegate.domain.errors import StoreUnavailable
from tidegate.domain.job import ClaimedJob, Outcome, OutcomeKind
from tidegate.domain.states import Reason
from tidegate.store import Store
from tidegate.transport import publish
from tidegate.transport.address import Limits, parameters
from tidegate.transport.binding import OPTION, Binding, Desk, binding
from tidegate.transport.claim import ClaimLoop
from tidegate.transport.delivery import Undeliverable, decode, prepare
from tidegate.transport.qos import LeaseQoS

logger = logging.getLogger(__name__)

#: what a broken connection raises. kombu counts KeyError among them; here that would hide a mistake of ours
LINK_ERRORS: tuple[type[BaseException], ...] = tuple(
    error for error in kombu_redis.Transport.connection_errors if error is not KeyError
)
#: what may interrupt a delivery without saying anything about the message
NOT_ITS_FAULT: tuple[type[BaseException], ...] = (MemoryError, *LINK_ERRORS)


class Client(kombu_redis.PrefixedStrictRedis):
    """kombu pings in the constructor of each channel; a producer's channel has nothing to say to the server."""

    quiet = False

    def ping(self, **options: Any) -> Any:
        return True if self.quiet else super().ping(**options)


class QuietClient(Client):
    quiet = True


class Channel(kombu_redis.Channel):
    """One channel. `claim_loop` is set on the channel through which this worker takes its jobs."""

    QoS = LeaseQoS
    qos: LeaseQoS
    #: text stays text: kombu's base64 would make each stored body a third larger
    body_encoding = None
    claim_loop: ClaimLoop | None = None
    _active: list[str] | None = None

    # --- the fleet

    @functools.cached_property
    def fleet(self) -> Binding:
        """The fleet this channel belongs to. LookupError if `tidegate.install` was not called."""
        return binding(self.connection.client.transport_options[OPTION])

    @property
    def store(self) -> Store:
        """The store of this process. Raises StoreUnavailable, StoreRefused at first use."""
        return self.fleet.store

    # --- publishing

    def _put(self, queue: str, message: dict[str, Any], **options: Any) -> None:
        if "task" in message["headers"] or self.fleet.is_task_queue(queue):
            publish.put(self.store, self.fleet.settings, queue, message)
        else:
            super()._put(queue, message, **options)

    def queue_declare(self, queue: str | None = None, passive: bool = False, **options: Any) -> Any:
        # declared in the settings; kombu would ask the server for a size that nobody reads
        if queue is not None and self.fleet.is_task_queue(queue):
            return queue_declare_ok_t(queue, self._size(queue) if passive else 0, 0)
        return super().queue_declare(queue, passive=passive, **options)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: Any, queue: str) -> None:
        if self._is_own_exchange(exchange, queue):
            return
        if self.typeof(exchange).type == "fanout":
            # Its messages go to whoever is subscribed, and nobody reads kombu's table of them. The table is also a
            # write, which full memory refuses: a worker that has to reconnect then would not get past it.
            self._fanout_queues[queue] = (exchange, routing_key.replace("#", "*"))
            return
        super()._queue_bind(exchange, routing_key, pattern, queue)

    def _refresh_bindings(self, queues: list[str]) -> None:
        bound = [queue for queue in queues if queue not in self._fanout_queues]
        if bound:
            super()._refresh_bindings(bound)

    def get_table(self, exchange: str) -> list[Any]:
        if self._is_own_exchange(exchange, exchange):
            return [(exchange, "", exchange)]
        return list(super().get_table(exchange))

    def _is_own_exchange(self, exchange: str, queue: str) -> bool:
        """The direct exchange of a queue of jobs has its name, and leads nowhere else: no need to store that."""
        return exchange == queue and self.fleet.is_task_queue(queue)

    # --- what kombu asks about a queue

    def _size(self, queue: str) -> int:
        if not self.fleet.is_task_queue(queue):
            return int(super()._size(queue))
        counts = self.store.snapshot().queues.get(queue)
        return counts.waiting if counts else 0

    def _has_queue(self, queue: str, **options: Any) -> bool:
        return self.fleet.is_task_queue(queue) or bool(super()._has_queue(queue, **options))

    def _purge(self, queue: str) -> int:
        if self.fleet.is_task_queue(queue):
            raise NotImplementedError(f"{queue!r} holds jobs; a job is not thrown away without a record")
        return int(super()._purge(queue))

    def _get(self, queue: str) -> Any:
        if self.fleet.is_task_queue(queue):
            raise NotImplementedError(f"{queue!r} holds jobs; only a worker can take one (it needs a lease)")
        return super()._get(queue)

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        # kombu's Redis channel looks into its `unacked` hash, which nothing of ours fills
        virtual.Channel._restore(self, message)

    # --- claiming

    def basic_consume(self, queue: str, *args: Any, **options: Any) -> Any:
        if self.fleet.is_task_queue(queue):
            if self.fleet.loop is None:
                raise NotImplementedError(
                    f"{queue!r} holds jobs; only a worker can take one (it needs a lease)"
                )
            self.claim_loop = self.fleet.loop
            self.desk.ask = self.ask
        self._active = None
        return super().basic_consume(queue, *args, **options)

    def _basic_cancel(self, consumer_tag: str) -> Any:
        self._active = None
        return super()._basic_cancel(consumer_tag)

    @property
    def active_queues(self) -> list[str]:
        if self._active is None:  # kombu makes the list anew several times for each message
            self._active = list(super().active_queues)
        return self._active

    @property
    def desk(self) -> Desk:
        assert self.fleet.desk is not None, "only a worker claims"
        return self.fleet.desk

    @property
    def _link(self) -> Any:
        """The connection for claims; kombu's own way to `client` takes a lock each time."""
        return (self.__dict__.get("client") or self.client).connection

    def _brpop_start(self, timeout: float | None = None) -> None:
        loop = self.claim_loop
        if loop is None:
            super()._brpop_start(timeout)
            return
        link = self._link
        try:
            if loop.start(link, tuple(filter(self.fleet.is_task_queue, self.active_queues)), self.qos.total):
                self._in_poll = link
                self._brpop_sent_at = monotonic()
        except LINK_ERRORS:
            link.disconnect()
            raise

    def _brpop_read(self, **options: Any) -> bool:
        loop = self.claim_loop
        if loop is None:
            return bool(super()._brpop_read(**options))
        jobs = list(self._answer(loop))
        self.ask()
        try:
            while jobs:
                self._hand_over(jobs.pop(0))
        finally:
            for job in jobs:  # an error of the connection ended the round: nobody will deliver these any more
                self.desk.leases.end(Outcome(job.ref, OutcomeKind.RELEASE))
        return True

    def ask(self) -> None:
        """Send the next request at once, so that the server works on it while this process goes on with what it has."""
        if self.closed or self._in_poll or self._link._sock is None:  # the poller connects, not we
            return
        if self.active_queues and self.qos.can_consume():
            try:
                self._brpop_start()
            except LINK_ERRORS as error:
                logger.debug("the poller connects again: %s", error)

    def _poll_error(self, type: str, **options: Any) -> None:
        if type == "BRPOP" and self.claim_loop is not None:
            self._brpop_read()
        else:
            super()._poll_error(type, **options)

    def _answer(self, loop: ClaimLoop) -> tuple[ClaimedJob, ...]:
        link = self._link
        try:
            return loop.read(link)
        except LINK_ERRORS:
            # the poller reconnects, and the claim is asked again with the same id
            link.disconnect()
            raise
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _hand_over(self, job: ClaimedJob) -> None:
        """Give one claimed job to Celery. Whatever is wrong with it costs this one job and nothing else.

        Without this guard one bad message loses the rest of its batch, and a KeyError makes Celery reconnect for ever.
        """
        leases = self.desk.leases
        if not leases.startable(job.ref):
            return  # given back meanwhile: the worker is stopping
        callback = self.connection._callbacks.get(job.queue)
        if callback is None:
            leases.end(
                Outcome(job.ref, OutcomeKind.RELEASE)
            )  # its consumer was cancelled while the claim was under way
            return
        try:
            callback(prepare(decode(job.envelope), job, self.desk.server_now_ms()))
        except Undeliverable as error:
            self._bury(job, error.reason, type(error).__name__, error.text)
        except NOT_ITS_FAULT:
            leases.end(Outcome(job.ref, OutcomeKind.RELEASE))
            raise
        except Exception as error:  # a message nobody foresaw must not end the worker; it is recorded
            logger.exception("job %s of queue %r cannot be delivered", job.ref.job_id, job.queue)
            self._bury(job, Reason.INVALID_MESSAGE, type(error).__name__, str(error))

    def _bury(self, job: ClaimedJob, reason: Reason, name: str, text: str) -> None:
        detail = json.dumps({"class": name, "message": text[:2000]})
        if self.desk.leases.end(Outcome(job.ref, OutcomeKind.UNDELIVERABLE, reason, detail)):
            logger.error(
                "job %s of queue %r is undeliverable (%s): %s", job.ref.job_id, job.queue, reason.value, text
            )

    # --- connections

    def _get_client(self) -> Any:
        kind = Client if self.fleet.desk is not None else QuietClient
        return functools.partial(kind, global_keyprefix=self.global_keyprefix)

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        limits = Limits(
            self.socket_timeout,
            self.socket_connect_timeout,
            self.health_check_interval,
            self.max_connections,
        )
        return parameters(self._open_store(), limits, self if asynchronous else None)

    def _open_store(self) -> Store:
        try:
            return self.store
        except StoreUnavailable as error:
            if self.fleet.desk is None:
                raise
            raise ConnectionError(str(error)) from error  # what makes Celery's worker try again

    # --- the end

    def close(self) -> None:
        """Close without waiting for a wake.

        A claim under way is asked again by the next channel; a stopping worker has none, so it reads the answer now,
        and the lease table gives its jobs back.
        """
        loop = self.claim_loop
        if loop is not None and self._in_poll:
            if loop.in_flight and loop.leases.draining:
                try:
                    self._answer(loop)
                except LINK_ERRORS as error:
                    logger.info(
                        "the last claim was not answered (%s); its jobs come back by themselves", error
                    )
            self._in_poll = None
        super().close()


__all__ = ["Channel"]
