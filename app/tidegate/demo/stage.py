"""What the demo runs on: its settings, its tenants, and which pages each of them wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.demo.site import BROKEN, GONE

#: seconds between two fires of the schedule
PERIOD = 2
#: the queue of the fetching jobs, and that of the schedule
QUEUE, TICKS = "default", "ticks"

SETTINGS = f"""\
# The demo's fleet. Everything here may stand in a tidegate.toml of your own.
[fleet]
name = "demo"
imports = ["tidegate.demo.tasks"]

[worker]
concurrency = 4
queues = ["{QUEUE}", "{TICKS}"]
lease = "4s"                        # so that a killed worker's jobs go on while you watch; 15s by default
heartbeat = "1s"

[queues.{QUEUE}]
max_depth = 400

[queues.{TICKS}]

[tenants.default]
max_concurrency = 4
rate = "unlimited"

[tenants.crawler]                   # twenty times the work of the others
max_concurrency = 3
max_depth = 300

[tasks."demo.fetch".retry]
base = "250ms"
cap = "1s"
max_retries = 3

[schedules.tick]
task = "demo.tick"
queue = "{TICKS}"
tenant = "globex"
every = "{PERIOD}s"
catch_up = "all"
overlap = "allow"
pass_fire_time = true
"""


@dataclass(frozen=True, slots=True)
class Tenant:
    """limit: its max_concurrency. pages: one job each. pause: seconds between two jobs; 0: as fast as it can."""

    name: str
    limit: int
    pages: Sequence[int]
    pause: float = 0.0

    @property
    def noisy(self) -> bool:
        """True for the one whose producer meets a full queue."""
        return self.pause == 0.0


_QUIET_JOBS, _NOISY_JOBS = 35, 700

TENANTS: tuple[Tenant, ...] = (
    Tenant("crawler", 3, [*range(_NOISY_JOBS - 2), GONE, GONE + 1]),
    Tenant("acme", 4, [*range(10_000, 10_000 + _QUIET_JOBS - 3), *range(BROKEN, BROKEN + 3)], 0.4),
    Tenant("globex", 4, [*range(20_000, 20_000 + _QUIET_JOBS - 3), *range(BROKEN + 3, BROKEN + 6)], 0.4),
)
#: pages of a chord of each quiet tenant, and of the jobs it sends while the fleet has nothing else to do
CHORD, IDLE = 5, 12
