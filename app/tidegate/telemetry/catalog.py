"""Every metric of Tidegate, as data: the contract that exporter, alerts, dashboards and docs/metrics.md are held to.

Pure. A metric that `exported` is False belongs to a room that is not built yet; its name and labels are reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidegate.domain.fire import Fate
from tidegate.domain.job import OutcomeKind
from tidegate.domain.states import Reason, State

OTHER = "other"  #: the label value that stands for everything beyond a label's bound


class Kind(Enum):
    """How Prometheus reads the numbers."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Unit(Enum):
    """What one of the metric is."""

    JOBS = "jobs"
    EVENTS = "events"
    LANES = "lanes"
    SLOTS = "slots"
    TOKENS = "tokens"
    SECONDS = "seconds"
    RATIO = "ratio"
    LEVEL = "level"
    TRUTH = "0 or 1"


@dataclass(frozen=True, slots=True)
class Label:
    """most: different values in one scrape, `other` included. of: where they come from. values: all, if closed."""

    name: str
    most: int
    of: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """note: what this release does not tell yet, or tells less exactly than `help` says; part of the HELP line."""

    name: str
    kind: Kind
    unit: Unit
    help: str
    labels: tuple[Label, ...] = ()
    exported: bool = False
    note: str = ""

    @property
    def most_series(self) -> int:
        """The bound on its series (of a histogram: on its label sets)."""
        bound = 1
        for label in self.labels:
            bound *= label.most
        return bound

    @property
    def text(self) -> str:
        """What its HELP line says."""
        return f"{self.help} {self.note}".rstrip()


def _closed(name: str, *values: str) -> Label:
    return Label(name, len(values), "", values)


QUEUE = Label(
    "queue", 500, "queues of the settings, then the deepest of the undeclared ones, the rest as `other`"
)
TENANT = Label("tenant", 10_001, "the `observability.top_tenants` with the oldest jobs, the rest as `other`")
TASK = Label("task", 1_000, "task names, the rest as `other`")
WORKER = Label("worker", 1_000, "ids of live workers, the rest as `other`")
RESOURCE = Label("resource", 1_000, "resources with limits of their own, the rest as `other`")
SCHEDULE = Label("schedule", 1_000, "schedules, the rest as `other`")
SCOPE = Label("scope", 1_000, "what a budget is for (the fleet, a task, a dependency), the rest as `other`")
COMPONENT = Label("component", 8, "duties that one process of the fleet has at a time")
BLOCK = Label("reason", 8, "kinds of what a lane can wait for")
VERSION = Label("version", 1, "the release of Tidegate")
STATE = _closed(
    "state", "waiting", "limited", "delayed", "retry_waiting", "running", "failed", "awaiting_event"
)
FINISHED = _closed("state", *(state.name.lower() for state in State if state.finished))
CAUSE = _closed("cause", "capacity", "limit")
FATE = _closed("fate", *(fate.value for fate in Fate))
RESULT = _closed("result", "accepted", "duplicate", "conflict", "full", "closed", "held")
REPLAY = _closed(
    "result", "ok", "gone", "changed", "expired", "conflict", "closed", "held", "pressure", "full"
)
OUTCOME = _closed("outcome", *(kind.value for kind in OutcomeKind), "lost")
REASON = _closed("reason", *(reason.value for reason in Reason if reason is not Reason.NONE))

_NOW = True  #: this release exports it
_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

# fmt: off
CATALOG: tuple[Metric, ...] = (
    # queues
    Metric("tidegate_queue_depth", _G, Unit.JOBS, "Unfinished jobs by state; the sum is what the queue's bound counts.",
           (QUEUE, STATE), _NOW, "`limited` jobs are counted as `waiting`; `awaiting_event` does not exist yet."),
    Metric("tidegate_queue_limit", _G, Unit.JOBS, "Unfinished jobs that the queue accepts (`max_depth`).",
           (QUEUE,), _NOW),
    Metric("tidegate_queue_oldest_age_seconds", _G, Unit.SECONDS,
           "Age of the oldest waiting job since its attempt became eligible, by what it waits for: a worker"
           " (`capacity`), or a limit of its tenant or dependency (`limit`).", (QUEUE, CAUSE), _NOW,
           "Looked for among the 64 oldest lanes of the queue."),
    Metric("tidegate_tenant_oldest_age_seconds", _G, Unit.SECONDS, "Age of the tenant's oldest waiting job.",
           (QUEUE, TENANT),
           _NOW, "Of the tenants among the 64 oldest lanes of the queue."),
    Metric("tidegate_queue_oldest_unfinished_seconds", _G, Unit.SECONDS,
           "Time since the first enqueue of the oldest job in any unfinished state.", (QUEUE,)),
    Metric("tidegate_queue_pressure", _G, Unit.LEVEL, "How full the queue is: 0 green, 1 yellow (70 %), 2 red (90 %).",
           (QUEUE,), _NOW),
    Metric("tidegate_queue_paused", _G, Unit.TRUTH, "1 while somebody has paused the queue.", (QUEUE,),
           _NOW),
    Metric("tidegate_queue_slots_wanted", _G, Unit.SLOTS,
           "Slots that would be busy now if they existed, limits counted in: the number to scale by.", (QUEUE,)),
    Metric("tidegate_parked_lanes", _G, Unit.LANES, "Lanes that wait for something other than a worker.", (BLOCK,)),
    # what happens to jobs
    Metric("tidegate_enqueues_total", _C, Unit.JOBS, "Jobs offered by producers, by the store's verdict.",
           (QUEUE, RESULT),
           _NOW, "`accepted` counts replays too."),
    Metric("tidegate_claims_total", _C, Unit.JOBS, "Jobs handed to workers.", (QUEUE,)),
    Metric("tidegate_attempts_total", _C, Unit.EVENTS, "Attempts that ended, by how.", (TASK, OUTCOME)),
    Metric("tidegate_jobs_finished_total", _C, Unit.JOBS, "Jobs that reached a final state.", (QUEUE, TASK, FINISHED)),
    Metric("tidegate_wait_seconds", _H, Unit.SECONDS, "Time from eligible to claimed, by what was waited for.",
           (QUEUE, CAUSE)),
    Metric("tidegate_run_seconds", _H, Unit.SECONDS, "Time from claim to the report of the attempt.", (TASK,)),
    # limits and resources
    Metric("tidegate_resource_in_use", _G, Unit.SLOTS, "Attempts that run and hold the resource.", (RESOURCE,),
           _NOW, "Of tenants that run or wait longest; other resources follow."),
    Metric("tidegate_resource_limit", _G, Unit.SLOTS, "Attempts that may hold the resource at once.", (RESOURCE,),
           _NOW, "Of tenants that run or wait longest and have a limit; other resources follow."),
    Metric("tidegate_bucket_tokens", _G, Unit.TOKENS, "Starts that the rate limit would allow now.", (RESOURCE,)),
    Metric("tidegate_resource_closed_seconds", _G, Unit.SECONDS, "Time until a closed resource opens; 0 if it is open.",
           (RESOURCE,)),
    Metric("tidegate_override_expires_seconds", _G, Unit.SECONDS, "Time until an operator's override ends.",
           (RESOURCE,)),
    Metric("tidegate_budget_spent_ratio", _G, Unit.RATIO, "Part of a quota that is spent.", (SCOPE,)),
    # retries and dead letters
    Metric("tidegate_retries_total", _C, Unit.EVENTS, "Retries decided, by the reason of the failure.",
           (TASK, REASON)),
    Metric("tidegate_retry_waiting", _G, Unit.JOBS, "Jobs whose next attempt has its time, by the last failure.",
           (REASON,)),
    Metric("tidegate_retry_budget_ratio", _G, Unit.RATIO, "Part of the retry budget that is left.", (SCOPE,)),
    Metric("tidegate_dead_letters", _G, Unit.JOBS, "Dead letters that nobody has replayed or discarded.",
           (QUEUE,), _NOW),
    Metric("tidegate_dead_letter_oldest_age_seconds", _G, Unit.SECONDS, "Age of the oldest dead letter.", (QUEUE,)),
    Metric("tidegate_dead_letters_total", _C, Unit.JOBS, "Jobs that became dead letters.", (QUEUE, REASON),
           _NOW),
    Metric("tidegate_replays_total", _C, Unit.JOBS, "Dead letters that somebody asked to replay.", (REPLAY,),
           _NOW),
    Metric("tidegate_reconciling", _G, Unit.JOBS, "Jobs whose effect is unknown and being asked for."),
    # leases and workers
    Metric("tidegate_leases_expired_total", _C, Unit.EVENTS, "Attempts whose worker fell silent for a whole lease.",
           (), _NOW),
    Metric("tidegate_stale_reports_total", _C, Unit.EVENTS,
           "Reports refused because another attempt owned the job by then, or nobody.", (), _NOW),
    Metric("tidegate_worker_up", _G, Unit.TRUTH, "1 for each worker that the fleet counts as alive.", (WORKER,), _NOW,
           "A worker that ends loses its series, one that is killed after four leases of silence."),
    Metric("tidegate_worker_last_claim_age_seconds", _G, Unit.SECONDS, "Time since the worker last asked for jobs.",
           (WORKER,)),
    # schedules
    Metric("tidegate_fires_total", _C, Unit.EVENTS, "Fires of schedules, by what became of them.", (SCHEDULE, FATE),
           _NOW),
    Metric("tidegate_fire_lag_seconds", _G, Unit.SECONDS, "How late the latest fire was.", (), _NOW),
    Metric("tidegate_leader", _G, Unit.TRUTH, "1 while some process has the duty.", (COMPONENT,)),
    # the store
    Metric("tidegate_store_up", _G, Unit.TRUTH,
           "1 if the store answered this scrape; at 0 the scrape has no number that comes from the store.", (), _NOW),
    Metric("tidegate_store_memory_ratio", _G, Unit.RATIO, "Used part of the server's maxmemory; 0 if it has no limit.",
           (), _NOW),
    Metric("tidegate_store_reset_total", _C, Unit.EVENTS,
           "Times the store came back and may have lost its last second.", (), _NOW),
    Metric("tidegate_build_info", _G, Unit.TRUTH, "Always 1; says which release the exporter is.", (VERSION,), _NOW),
)
# fmt: on

_BY_NAME = {metric.name: metric for metric in CATALOG}


def metric(name: str) -> Metric:
    """The metric of that name. KeyError if the catalogue has none: nothing is exported that is not in it."""
    return _BY_NAME[name]


_HEAD = f"""# Metrics

This page is generated from `app/tidegate/telemetry/catalog.py`; `make generate` writes it. `tidegate exporter` serves
them on `observability.metrics_address`, at `/metrics`; `/healthz` says that the exporter runs, `/readyz` that the store
answers. All numbers of a scrape come from one instant of the store, so several exporters of a fleet say the same: query
them with `max by`, never `sum`.

Known series are there from the first scrape, with 0. While the store cannot be read, a scrape has `tidegate_store_up 0`
and no other number that comes from the store. Every label is bounded; what is beyond a bound is in one series,
`{OTHER}`, which holds the sum of counts and the greatest of ages and levels.
"""


def as_markdown() -> str:
    """The whole page docs/metrics.md."""
    now = [metric for metric in CATALOG if metric.exported]
    later = [metric for metric in CATALOG if not metric.exported]
    users: dict[Label, list[str]] = {}
    for one in CATALOG:
        for label in one.labels:
            users.setdefault(label, []).append(f"`{one.name.removeprefix('tidegate_')}`")
    page = [_HEAD, "\n## In this release\n", _TABLE, *map(_row, now)]
    page += [
        "\n## Reserved\n\nNames of later releases; nothing exports them yet.\n",
        _TABLE,
        *map(_row, later),
    ]
    page += ["\n## Labels\n\n| label | at most | values | of |\n|---|---|---|---|\n"]
    for label, names in users.items():
        values = label.of or ", ".join(f"`{value}`" for value in label.values)
        page.append(f"| `{label.name}` | {label.most:,} | {values} | {', '.join(names)} |\n")
    return "".join(page)


_TABLE = "\n| metric | type | unit | meaning |\n|---|---|---|---|\n"


def _row(one: Metric) -> str:
    labels = "{" + ",".join(label.name for label in one.labels) + "}" if one.labels else ""
    return f"| `{one.name}{labels}` | {one.kind.value} | {one.unit.value} | {one.text} |\n"
