"""Sections that every fleet has: fleet, broker, worker, queues, tenants (DESIGN §11)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from tidegate.config.compound import or_word, words_of
from tidegate.config.field import setting
from tidegate.config.kind import choice, duration, flag, frequency, integer, name, number, size, text
from tidegate.config.quantity import Rate

MODULE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
BROKER = r"(?:embedded|(?:redis|rediss|unix|sentinel)://\S+)"


class Pool(Enum):
    """Celery's pools that can obey a lease."""

    PREFORK = "prefork"
    THREADS = "threads"
    SOLO = "solo"


class PriorityOrder(Enum):
    """Which way Celery's integer priorities 1 to 9 point: below `normal` as kombu serves them on Redis, or above it."""

    REDIS = "redis"
    AMQP = "amqp"


class OnFull(Enum):
    """What a full queue does with a new job."""

    REJECT = "reject"
    BLOCK = "block"
    SHED = "shed"
    DEFER = "defer"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """[fleet]"""

    name: str = setting(
        text("letters, digits, `.`, `_` or `-`, at most 64", r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"),
        "default",
        "Namespace and hash tag of all keys; fleets with different names share a server without meeting.",
    )
    imports: tuple[str, ...] = setting(
        words_of(text("a module name", MODULE)),
        [],
        "Modules that define Celery tasks; the worker imports them.",
    )
    celery_app: str = setting(
        text('"package.module:attribute", or "" for none', rf"(?:{MODULE}:{MODULE})?"),
        "",
        "Your own Celery app to run in; empty: Tidegate makes one.",
    )
    release: str = setting(
        text("text of at most 128 bytes", limit=128),
        "",
        "The release of your code, recorded with each attempt (also TIDEGATE_RELEASE).",
    )
    priority_order: PriorityOrder = setting(
        choice(PriorityOrder),
        "redis",
        "Whether Celery's integer priorities 1-9 are below normal (redis) or above it (amqp).",
    )
    idempotency_ttl: float = setting(
        duration(1.0), "24h", "How long an idempotency key is remembered after the end of its job."
    )
    enqueue_timeout: float = setting(
        duration(0.05, 600.0),
        "2s",
        "How long a producer waits for the store before it is told that the store is unavailable.",
    )
    max_body: int = setting(size(1024), "1MiB", "The largest message that is accepted.")
    result_expires: float | None = setting(
        or_word("never", duration(1.0)), "1h", "How long results are kept."
    )
    history: float = setting(duration(0.0), "1h", "How long finished jobs can be looked up.")
    history_jobs: int = setting(integer(0, 10**7), 100_000, "How many finished jobs can be looked up.")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """[broker]"""

    url: str = setting(
        text('"embedded", or a URL that starts with redis://, rediss://, unix:// or sentinel://', BROKER),
        "embedded",
        "Where the store is; `embedded` starts the bundled Valkey.",
        secret=True,
    )
    data_dir: str = setting(
        text("a directory", r"(?s)[^\0]+"),
        ".tidegate",
        "Data of the embedded server, relative to the settings file.",
    )
    result_backend: str = setting(
        text('"same", "none" or the URL of a Celery result backend', r"same|none|[a-z][a-z0-9+._-]*://\S*"),
        "same",
        "Where results go.",
        secret=True,
    )
    allow_eviction: bool = setting(flag(), False, "Accept a server that may evict keys. Jobs can be lost.")

    @property
    def shown_url(self) -> str:
        """The URL without its password, for messages."""
        scheme, mark, rest = self.url.partition("://")
        credentials, at, place = rest.rpartition("@")
        if not at or ":" not in credentials:
            return self.url
        return f"{scheme}{mark}{credentials.partition(':')[0]}:***@{place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """[worker]"""

    pool: Pool = setting(
        choice(Pool, "gevent and eventlet cannot keep a lease"),
        "prefork",
        "Celery's pool.",
    )
    concurrency: int = setting(integer(1, 1024), 2, "Jobs that one worker runs at once.")
    queues: tuple[str, ...] = setting(
        words_of(name("a queue name")), ["default"], "Queues that a worker consumes."
    )
    lease: float = setting(
        duration(0.2, 3600.0), "15s", "How long a worker may be silent before its jobs go to others."
    )
    heartbeat: float = setting(
        duration(0.05, 900.0), "3s", "How often a worker extends its leases; at most a quarter of the lease."
    )
    drain_timeout: float = setting(
        duration(0.0, 86_400.0), "25s", "How long a stopping worker lets its running jobs finish."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """[queues.NAME]"""

    max_depth: int = setting(integer(1, 10**8), 10_000, "Unfinished jobs that the queue accepts.")
    max_bytes: int | None = setting(
        or_word("unlimited", size(1)), "256MiB", "Bytes of unfinished jobs.", later=True
    )
    max_age: float | None = setting(
        or_word("unlimited", duration(0.001)),
        "15m",
        "Refuse while the oldest eligible job is older.",
        later=True,
    )
    objective_age: float = setting(
        duration(0.001), "60s", "The age that alerts hold the queue to.", later=True
    )
    on_full: OnFull = setting(
        choice(OnFull),
        "reject",
        "What happens to a job that does not fit.",
        later=True,
        acted_on=OnFull.REJECT,
    )
    block_timeout: float = setting(
        duration(0.0, 600.0), "2s", "How long `on_full = block` waits.", later=True
    )
    max_deferred: int = setting(
        integer(0, 10**8), 1_000, "Jobs that `on_full = defer` keeps aside.", later=True
    )
    reserve: float = setting(
        number(0, 0.9), 0.1, "Part of the queue kept for tenants below their share.", later=True
    )
    weight: float = setting(number(0.01, 1000), 1, "Share of the workers that consume several queues.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSettings:
    """[tenants.NAME]; `[tenants.default]` is the base of the others and serves names never seen before.

    None means unlimited, which a file must say. `burst` is never None when there is a rate: it is one second's worth.
    """

    FOLLOWS: ClassVar = {"burst": "rate"}

    max_concurrency: int | None = setting(
        or_word("unlimited", integer(0, 10**6)), 10, "Jobs of the tenant that run at once; 0 stops it."
    )
    rate: Rate | None = setting(or_word("unlimited", frequency()), "100/s", "Job starts of the tenant.")
    burst: int | None = setting(
        integer(1, 10**9), None, "Job starts that may come at once; left out: one second of the rate."
    )
    weight: float = setting(number(0.01, 1000), 1, "Share among tenants that wait for the same thing.")
    max_depth: int | None = setting(
        or_word("unlimited", integer(0, 10**8)), 5_000, "Unfinished jobs of the tenant in each queue."
    )

    def __post_init__(self) -> None:
        if self.burst is None and self.rate is not None:
            object.__setattr__(self, "burst", self.rate.second_worth)
