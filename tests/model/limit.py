"""Limits and token buckets of the reference model: whole numbers only, so that nothing drifts."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOKEN = 1_000_000  #: micro-tokens of one start


@dataclass(frozen=True, slots=True)
class Limit:
    """conc, depth: -1 = unlimited; n micro-tokens every d ms (0: no rate); burst in micro-tokens."""

    weight: float = 1.0
    conc: int = -1
    n: int = 0
    d: int = 1
    burst: int = 0
    depth: int = -1
    paused: bool = False
    till: int = 0
    closed: bool = False

    def __str__(self) -> str:
        numbers = f"{self.conc} {self.n} {self.d} {self.burst} {self.depth}"
        return f"{self.weight:g} {numbers} {self.paused:d} {self.till} {self.closed:d}"


UNLIMITED = Limit()


@dataclass(slots=True)
class Bucket:
    """`tokens` at the instant `stamp`; `rest`: what has gathered towards the next micro-token, in 1/d."""

    tokens: int
    stamp: int
    rest: int = 0

    def refill(self, limit: Limit, now: int) -> None:
        """Gather what time gave. Time that goes back gives nothing, and a full bucket gathers nothing."""
        if now > self.stamp:
            credit = (now - self.stamp) * limit.n + self.rest
            self.tokens, self.rest, self.stamp = self.tokens + credit // limit.d, credit % limit.d, now
        if self.tokens >= limit.burst:
            self.tokens, self.rest = limit.burst, 0

    def ready_at(self, limit: Limit, now: int) -> int:
        """The instant at which one token is there."""
        return now + max(1, math.ceil(((TOKEN - self.tokens) * limit.d - self.rest) / limit.n))

    def __str__(self) -> str:
        return f"{self.tokens} {self.stamp} {self.rest}"
