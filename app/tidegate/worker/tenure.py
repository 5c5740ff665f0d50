"""How long each lease of this worker is known to be good, and which bodies run on the strength of it.

The store extends a lease from the moment it handles the request; this worker knows only when it sent one. So a
lease counts from the *send* time of the claim or of the heartbeat that last confirmed it, and a claim whose
reply was read too late (the worker was frozen meanwhile) gives no right to start anything.

The lease table calls these methods under its lock; nothing here locks or blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b

from tidegate.domain.job import LeaseRef
from tidegate.worker.stamp import Stamp, boottime_ns


def lease_tag(ref: str) -> int:
    """Eight bytes, the same in every process, that stand for one lease in the page; never 0."""
    return int.from_bytes(blake2b(ref.encode(), digest_size=8).digest(), "big") or 1


class Tenure:
    """The main process's book about its leases; whatever others must know goes to the page at once."""

    def __init__(self, stamp: Stamp, clock: Callable[[], int] = boottime_ns) -> None:
        self._stamp = stamp
        self._clock = clock
        self._since: dict[LeaseRef, int] = {}
        self._started: dict[LeaseRef, int] = {}  # -> its tag in the page

    def granted(self, refs: Iterable[LeaseRef], sent_ns: int) -> None:
        """A claim sent at `sent_ns` gave us these leases."""
        for ref in refs:
            self._since[ref] = sent_ns

    def fresh(self, ref: LeaseRef) -> bool:
        """True if a body may be started on this lease now."""
        since = self._since.get(ref)
        return since is not None and self._clock() - since <= self._stamp.limit_ns

    def start(self, ref: LeaseRef) -> bool:
        """Give a body the right to run. False if the lease is too old, or the page has no room for one more."""
        since = self._since.get(ref)
        if since is None or self._clock() - since > self._stamp.limit_ns:
            return False
        tag = lease_tag(str(ref))
        if not self._stamp.admit(tag, since):
            return False
        self._started[ref] = tag
        return True

    def over(self, ref: LeaseRef) -> None:
        """No body runs on this lease any more, and none may start."""
        self._since.pop(ref, None)
        tag = self._started.pop(ref, None)
        if tag is not None:
            self._stamp.expel(tag)

    def confirmed(self, refs: Iterable[LeaseRef], sent_ns: int) -> None:
        """A heartbeat sent at `sent_ns` extended these leases."""
        for ref in refs:
            if ref in self._since:
                self._since[ref] = max(sent_ns, self._since[ref])
        self._stamp.confirm(min((self._since[ref] for ref in self._started), default=sent_ns))
