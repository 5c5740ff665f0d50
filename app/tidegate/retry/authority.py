"""Takes every failed attempt, decides, applies. Any number may run: a decision holds for one attempt, once."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.domain.backoff import RetryPolicy
from tidegate.domain.decision import Retry, decide, word
from tidegate.store import Store

log = logging.getLogger(__name__)

#: failures of one round; the next round follows at once while there are more
BATCH = 100


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did: attempts looked at, decisions that the store took, decisions to retry (taken or not)."""

    seen: int
    accepted: int
    retries: int

    @property
    def more(self) -> bool:
        """True if another round should follow at once: there may be more, and this one got somewhere."""
        return self.seen == BATCH and self.accepted > 0


class Authority:
    """policy: of a task, by its name. chance: evenly drawn from [0, 1), for the jitter."""

    def __init__(
        self,
        store: Store,
        policy: Callable[[str], RetryPolicy],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store, self._policy, self._chance = store, policy, chance

    def step(self) -> Round:
        """One batch. Raises StoreUnavailable, StoreRefused; then nothing is decided, or it is and the next call finds
        it so."""
        now_ms, failures = self._store.failures(BATCH)
        if not failures:
            return Round(0, 0, 0)
        decisions = [
            (
                failure,
                decide(failure.attempt, self._policy(failure.task), now_ms=now_ms, rand=self._chance()),
            )
            for failure in failures
        ]
        for failure, decision in decisions:
            log.info("%s of job %s: %s", failure.task, failure.ref.job_id, word(decision))
        accepted = self._store.decide(decisions)
        return Round(len(failures), accepted, sum(isinstance(decision, Retry) for _, decision in decisions))
