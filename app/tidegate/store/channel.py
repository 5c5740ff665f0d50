"""The claim connection of a worker, for a caller that reads and writes the socket itself (kombu's event loop)."""

from __future__ import annotations

import secrets
from typing import Any

from tidegate.domain.job import Outcome
from tidegate.store import reply
from tidegate.store.call import ClaimReply, ClaimRequest
from tidegate.store.line import Argument, is_unknown
from tidegate.store.script import load
from tidegate.store.store import Store

Command = tuple[Argument, ...]


class ClaimChannel:
    """One request at a time; it is kept until its reply was parsed, so that a reconnect can ask for the same answer."""

    def __init__(self, store: Store, worker_id: str) -> None:
        self._store, self._script = store, load("claim")
        self._client = f"{worker_id}.{secrets.token_hex(4)}"
        self._id = 0
        self._open: ClaimRequest | None = None
        self._whole = False

    @property
    def unanswered(self) -> bool:
        """True while a request waits for its reply."""
        return self._open is not None

    def command(self, request: ClaimRequest, run_id: str) -> Command:
        """A new claim, as the arguments of one command."""
        self._id += 1
        self._open = request
        return self._send(request, run_id)

    def replay(self, run_id: str) -> Command | None:
        """The unanswered claim once more, with the same request id; None if there is none."""
        return None if self._open is None else self._send(self._open, run_id)

    def _send(self, request: ClaimRequest, run_id: str) -> Command:
        verb = self._store.engine.verb(self._script, self._whole)
        return (*verb, 1, self._store.key_prefix, self._client, self._id, run_id, *request.arguments())

    def wait_command(self, queues: tuple[str, ...], wait_ms: int) -> Command:
        """Wait for a wake of any of the queues; whatever comes back, also nothing, means: claim now."""
        return ("BLPOP", *map(self._store.keyspace.wake, queues), f"{max(wait_ms, 1) / 1000:.3f}")

    def parse(self, raw: Any) -> ClaimReply:
        """The reply of `command` or `replay`. Raises StoreRefused if the fleet's records are gone."""
        answer = reply.claim(raw, self._store.target.shown)
        self._open, self._whole = None, False
        return answer

    def is_unknown(self, error: Exception) -> bool:
        """True if the server does not know the script: then the next send carries its source."""
        if not is_unknown(error):
            return False
        self._whole = True
        return True

    def abandon(self) -> tuple[Outcome, ...]:
        """Give the unanswered request up; its outcomes go back to whoever keeps them."""
        request, self._open = self._open, None
        return request.outcomes if request else ()
