"""Named places where a test stops, kills or fails the process, to try each order of events that a crash can leave.

`reach("claim.answered")` does nothing, at the cost of one call, unless TIDEGATE_FAULTPOINTS was set when this module
was imported: `name=action[:nth]`, separated by commas. Actions: `kill` (SIGKILL), `stop` (SIGSTOP, until somebody
sends SIGCONT), `exit` (without any clean-up), `raise` (FaultReached). The action happens at the nth time (default 1),
or each time with `:*`.

With TIDEGATE_FAULTPOINTS_DIR every arrival is written to a file there before the action, and all processes count
together: a point that kills a child kills one child, and not also the one that replaces it.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TIDEGATE_FAULTPOINTS"
DIRECTORY_VARIABLE = "TIDEGATE_FAULTPOINTS_DIR"
EXIT_STATUS = 70  # EX_SOFTWARE

_ORDER = re.compile(r"(?P<name>[a-z0-9_.-]+)=(?P<action>kill|stop|exit|raise)(:(?P<nth>[1-9][0-9]*|\*))?")


class FaultReached(Exception):
    """What the action `raise` raises."""


@dataclass(frozen=True, slots=True)
class Order:
    """nth: 0 for each time."""

    action: str
    nth: int


def parse(text: str) -> Mapping[str, Order]:
    """Raises ValueError with the part that is wrong: a test whose fault never happens would pass for nothing."""
    orders = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _ORDER.fullmatch(part)
        if match is None:
            raise ValueError(f"{VARIABLE}: {part!r} is not name=kill|stop|exit|raise[:nth|:*]")
        nth = match["nth"] or "1"
        orders[match["name"]] = Order(match["action"], 0 if nth == "*" else int(nth))
    return orders


class Faults:
    """The armed points of a process."""

    def __init__(self, orders: Mapping[str, Order], directory: Path | None) -> None:
        self._orders = orders
        self._directory = directory
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}

    def reach(self, name: str) -> None:
        order = self._orders.get(name)
        if order is None:
            return
        number = self._count(name) if self._directory is None else _count_in(self._directory / name)
        if order.nth in (0, number):
            _act(name, order.action)

    def _count(self, name: str) -> int:
        with self._lock:
            self._seen[name] = self._seen.get(name, 0) + 1
            return self._seen[name]


def _count_in(file: Path) -> int:
    """Add a line with our pid; returns how many there are. One process after the other."""
    with file.open("a+") as arrivals:
        fcntl.flock(arrivals, fcntl.LOCK_EX)
        arrivals.seek(0)
        number = len(arrivals.readlines()) + 1
        arrivals.write(f"{os.getpid()}\n")
    return number


def _act(name: str, action: str) -> None:
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "exit":
            os._exit(EXIT_STATUS)
        case _:
            raise FaultReached(name)


def _nothing(name: str) -> None:
    """A place that a test can name (see the module)."""


def _armed() -> Callable[[str], None]:
    text = os.environ.get(VARIABLE)
    if not text:
        return _nothing
    directory = os.environ.get(DIRECTORY_VARIABLE)
    return Faults(parse(text), Path(directory) if directory else None).reach


reach = _armed()
