"""What no key can know alone: faults and warnings that follow from several settings together. Pure."""

from __future__ import annotations

from math import inf

from tidegate.config.core import QueueSettings, TenantSettings
from tidegate.config.kind import quoted
from tidegate.config.model import Settings
from tidegate.config.quantity import format_duration
from tidegate.config.reader import Path, Reading, nearest
from tidegate.config.task import DEFAULT_TASK, TaskSettings
from tidegate.domain.backoff import Backoff

#: beats that must fit into a lease, so that one or two lost ones end nothing
BEATS_PER_LEASE = 4


def check(settings: Settings, reading: Reading) -> None:
    """Notes all of it in `reading`."""
    _broker(settings, reading)
    _worker(settings, reading)
    for name, queue in settings.queues.items():
        _queue(queue, ("queues", name), reading)
    for name, tenant in settings.tenants.items():
        _tenant(tenant, ("tenants", name), reading)
    for name, task in settings.tasks.items():
        _task(task, ("tasks", name), settings, reading)
    for name, schedule in settings.schedules.items():
        path = ("schedules", name)
        ways = [key for key in ("cron", "every", "at") if getattr(schedule, key) is not None]
        if len(ways) != 1 and not reading.wrong & {(*path, key) for key in ("cron", "every", "at")}:
            got = " and ".join(ways) or "none of them"
            reading.fault(path, f'expected exactly one of "cron", "every" or "at", got {got}')
        if schedule.task is None and (*path, "task") not in reading.wrong:
            reading.fault(path, 'the key "task" is missing')
        if schedule.queue is not None:
            _declared(schedule.queue, (*path, "queue"), settings, reading)

    _overlap(settings, reading)


def _overlap(settings: Settings, reading: Reading) -> None:
    """The default is not acted on yet, and a key that nobody wrote has no warning of its own."""
    silent = [name for name in settings.schedules if ("schedules", name, "overlap") not in reading.given]
    if silent:
        more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
        reading.warn(
            ("schedules", silent[0]),
            f"overlap is not acted on yet: its fires{more} start beside an unfinished last run; "
            'overlap = "allow" says that you know',
        )


def _broker(settings: Settings, reading: Reading) -> None:
    broker = settings.broker
    if broker.allow_eviction:
        reading.warn(("broker", "allow_eviction"), "a server that evicts keys loses jobs")
    if broker.shown_url != broker.url and ("broker", "url") not in reading.variables:
        reading.warn(("broker", "url"), "a password stands in the file; TIDEGATE_BROKER_URL keeps it out")


def _worker(settings: Settings, reading: Reading) -> None:
    worker = settings.worker
    timing = {("worker", "lease"), ("worker", "heartbeat")}
    if worker.heartbeat * BEATS_PER_LEASE > worker.lease and not reading.wrong & timing:
        allowed = format_duration(worker.lease / BEATS_PER_LEASE)
        got = format_duration(worker.heartbeat)
        path = ("worker", "heartbeat") if ("worker", "heartbeat") in reading.given else ("worker", "lease")
        reading.fault(
            path,
            f"expected worker.heartbeat to be at most a quarter of worker.lease ({format_duration(worker.lease)} / "
            f"{BEATS_PER_LEASE} = {allowed}), got {got}",
        )
    elif worker.lease < 3:
        reading.warn(("worker", "lease"), "below 3s a busy machine loses leases of healthy workers")
    elif worker.lease > 300:
        reading.warn(("worker", "lease"), "a job of a lost worker waits this long before it runs again")
    if not worker.queues and ("worker", "queues") not in reading.wrong:
        reading.fault(("worker", "queues"), "expected at least one queue, got an empty list")
    for index, name in enumerate(worker.queues):
        _declared(name, ("worker", "queues"), settings, reading, f"[{index}]")


def _queue(queue: QueueSettings, path: Path, reading: Reading) -> None:
    if queue.max_depth > 1_000_000:
        reading.warn(
            (*path, "max_depth"),
            "more than 1,000,000 jobs were never measured; a waiting job takes about 1 KB and its body",
        )


def _tenant(tenant: TenantSettings, path: Path, reading: Reading) -> None:
    if tenant.max_concurrency == 0:
        reading.warn((*path, "max_concurrency"), "0 means that no job of the tenant ever runs")
    if tenant.max_depth == 0:
        reading.warn((*path, "max_depth"), "0 means that no job of the tenant is ever accepted")
    rate, burst = tenant.rate, tenant.burst
    if rate is not None and burst is not None and burst >= rate.burst_limit:
        key = "burst" if (*path, "burst") in reading.given else "rate"
        reading.fault(
            (*path, key), f"expected a burst below {rate.burst_limit:,} for the rate {rate}, got {burst:,}"
        )


def _task(task: TaskSettings, path: Path, settings: Settings, reading: Reading) -> None:
    if task.queue is not None:
        _declared(task.queue, (*path, "queue"), settings, reading)
    whole = task.over(DEFAULT_TASK)
    attempt, step = whole.timeouts.attempt or inf, whole.timeouts.step or inf
    if attempt > step:
        reading.warn(
            (*path, "timeouts"),
            "the attempt timeout is longer than the step timeout, which ends the job first",
        )
    retry = whole.retry
    if retry.kind is Backoff.EXPONENTIAL and (retry.base or 0) > (retry.cap or inf):
        reading.fault(
            (*path, "retry", "base"),
            f"expected at most the cap of {format_duration(retry.cap or 0)}, got {format_duration(retry.base or 0)}",
        )
    if retry.window == inf and step == inf:
        reading.fault(
            (*path, "retry", "window"),
            'expected a window or a step timeout, got "none" for both: retries would never end',
        )
    for index, name in enumerate(task.dependencies or ()):
        if name not in settings.dependencies:
            near = nearest(name, tuple(settings.dependencies))
            reading.fault(
                (*path, "dependencies"),
                f"expected a dependency that a section [dependencies.NAME] declares, got {_quoted(name)}",
                _quoted(near),
                f"[{index}]",
            )


def _declared(name: str, path: Path, settings: Settings, reading: Reading, suffix: str = "") -> None:
    if not settings.declares(name) and path not in reading.wrong:
        reading.fault(
            path,
            f"expected a queue that a section [queues.NAME] declares (or [queues] open = true), got {_quoted(name)}",
            _quoted(nearest(name, tuple(settings.queues))),
            suffix,
        )


def _quoted(word: str) -> str:
    return quoted(word) if word else ""
