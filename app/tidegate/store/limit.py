"""Limits as the scripts read them: nine numbers in a word list (lua/lib/limits.lua)."""

from __future__ import annotations

from tidegate.config import QueueSettings, Settings, TenantSettings
from tidegate.store.keyspace import encode

MICRO = 1_000_000


def of_queue(queue: QueueSettings) -> str:
    """weight, no concurrency limit, no rate, the bound."""
    return f"{queue.weight:g} -1 0 1 0 {queue.max_depth} 0 0 0"


def of_tenant(tenant: TenantSettings) -> str:
    """weight, concurrency, rate (micro-tokens per ms, as a fraction), burst, bound per queue; -1 = unlimited."""
    concurrency = -1 if tenant.max_concurrency is None else tenant.max_concurrency
    depth = -1 if tenant.max_depth is None else tenant.max_depth
    rate = (tenant.rate.micro, tenant.rate.per_ms, (tenant.burst or 1) * MICRO) if tenant.rate else (0, 1, 0)
    return f"{tenant.weight:g} {concurrency} {rate[0]} {rate[1]} {rate[2]} {depth} 0 0 0"


def table(settings: Settings) -> list[str]:
    """(resource, limits) pairs of all sections, flat; `default` sections are the answer for names never seen."""
    flat: list[str] = []
    for name, queue in settings.queues.items():
        flat += (f"queue:{encode(name)}", of_queue(queue))
    for name, tenant in settings.tenants.items():
        flat += (f"tenant:{encode(name)}", of_tenant(tenant))
    flat += (
        "queue:*",
        of_queue(settings.queue("default")),
        "tenant:*",
        of_tenant(settings.tenant("default")),
    )
    return flat
