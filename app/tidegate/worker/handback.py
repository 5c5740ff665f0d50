"""Giving back what a stopping worker could not finish, once its body is dead for certain.

In the prefork pool the child is killed first and the report follows. Where bodies run inside the worker (threads,
solo) the whole process must die before anybody may be told, and a dead process tells nothing. So the process
replaces itself (exec, which ends every other thread at once) with this program; pid and supervisor stay the same.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import NoReturn

from tidegate.config import Settings
from tidegate.domain.errors import TidegateError
from tidegate.domain.job import ClaimedJob, Outcome
from tidegate.store import Store
from tidegate.worker import ends

logger = logging.getLogger("tidegate.handback")

#: seconds this program tries to reach the store; the leases end by themselves soon after
PATIENCE = 8.0


def hand_back(job: ClaimedJob) -> Outcome:
    """The report about a body that was killed because its worker stops (DESIGN §4, leases).

    Whatever may be repeated goes to the front, not charged; what may not waits for the authority.
    """
    return ends.cancelled(job).outcome(job.ref)


@dataclass(frozen=True, slots=True)
class Testament:
    """What the process that is about to end leaves to this program."""

    settings: Settings
    url: str
    worker_id: str
    outcomes: tuple[Outcome, ...]


def replace_process(testament: Testament) -> NoReturn:
    """End every body of this process now and report afterwards, from the same pid. Never returns.

    Nothing of the old process runs on: no exit handler, no `finally`. OSError if the system refuses the exec.
    """
    with tempfile.TemporaryFile(prefix="tidegate-") as file:
        pickle.dump(testament, file)
        file.flush()
        os.set_inheritable(file.fileno(), True)  # survives the exec; the file has no name
        os.execv(sys.executable, [sys.executable, "-m", "tidegate.worker.handback", str(file.fileno())])


def carry_out(testament: Testament) -> int:
    """Report the outcomes and take leave. Exit status: 0, or 3 if the store could not be reached in time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            store = Store(testament.settings, testament.url)  # no start checks: the worker made them
            words = store.settle(testament.outcomes, testament.worker_id)
            store.unregister(testament.worker_id)
            store.close()
        except TidegateError as error:
            if time.monotonic() >= deadline:
                logger.error("not handed back, the leases will end by themselves: %s", error)
                return error.exit_code
            time.sleep(0.2)
        else:
            logger.warning("handed back: %s", ", ".join(word.value for word in words) or "nothing")
            return 0


def main(arguments: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s: %(levelname)s] %(name)s: %(message)s")
    with os.fdopen(int(arguments[1]), "rb") as file:
        file.seek(0)
        testament: Testament = pickle.load(file)  # written by this very process a moment ago
    return carry_out(testament)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
