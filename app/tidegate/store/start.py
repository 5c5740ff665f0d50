"""Checks before a store is used: what the server is, how it is set up, whose data it holds."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from tidegate.config import Settings
from tidegate.domain.errors import StoreRefused
from tidegate.store import limit
from tidegate.store.line import Line
from tidegate.store.script import load

log = logging.getLogger(__name__)

SCHEMA = 2  #: version of the key layout; a store with another one is refused
#: first epochs start here: with 2^32 ids each, every id has 16 digits, so that ids of equal score sort by age
EPOCH_BASE = 1 << 18
_EPOCH_ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def information(line: Line, timeout: float = 2.0) -> dict[str, str]:
    """INFO of the server as a mapping; `timeout` in seconds."""
    raw = line.command("INFO", timeout=timeout, repeat=True)
    if isinstance(raw, Exception):
        raise StoreRefused("the server", f"INFO was refused: {raw}", "allow +info for the ACL user")
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return dict(
        entry.split(":", 1) for entry in text.splitlines() if ":" in entry and not entry.startswith("#")
    )


def check_version(info: Mapping[str, str]) -> str:
    """What is wrong with the server's version; empty if nothing is."""
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version", "0")
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    least = (8, 0) if name == "Valkey" else (7, 0)
    return f"{name} {version} is too old" if numbers < least else ""


def check_server(info: Mapping[str, str], settings: Settings, url: str) -> None:
    """Version, eviction, persistence. Raises StoreRefused; logs what is legal but risky."""
    if old := check_version(info):
        raise StoreRefused(url, old, "use Redis 7.0 or newer, or Valkey 8.0 or newer")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and not settings.broker.allow_eviction:
        raise StoreRefused(
            url,
            f"maxmemory-policy is {policy}, so the server may throw jobs away",
            "CONFIG SET maxmemory-policy noeviction, or accept the loss with broker.allow_eviction = true",
        )
    if info.get("aof_enabled") == "0":
        log.warning("the store at %s has no append-only file: what it holds is lost when it stops", url)


def claim_fleet(line: Line, settings: Settings, url: str, clock: str) -> None:
    """Create the fleet's meta record or compare with it. Raises StoreRefused."""
    hours = int((datetime.now(UTC) - _EPOCH_ZERO).total_seconds() // 3600)
    lease_ms = round(settings.worker.lease * 1000)
    arguments = (SCHEMA, EPOCH_BASE + hours, lease_ms, clock)
    reply = line.run([(load("init"), arguments)], settings.fleet.enqueue_timeout)[0]
    if isinstance(reply, Exception):
        raise StoreRefused(url, f"the server refuses our scripts: {reply}", "see the server's log and ACL")
    schema, real = int(reply[1]), reply[2] == b"-"
    if schema > SCHEMA:
        raise StoreRefused(
            url, f"its key schema is {schema}, newer than {SCHEMA}", "upgrade tidegate on this machine"
        )
    if schema < SCHEMA:  # 1 was never in a release
        raise StoreRefused(
            url,
            f"its key schema is {schema}, older than {SCHEMA}, which a development version wrote",
            "use another fleet.name or broker.data_dir, or empty the store",
        )
    if not real and clock == "-":
        log.warning("the fleet %r runs on a test clock", settings.fleet.name)
    if real and clock != "-":
        raise StoreRefused(
            url,
            f"fleet {settings.fleet.name!r} runs on the server's clock for ever",
            "use another fleet.name for tests",
        )


def configure(line: Line, settings: Settings, replace: bool) -> None:
    """Write the limits of the settings (a producer only fills an empty store)."""
    fleet = settings.fleet
    line.run(
        [
            (
                load("configure"),
                [
                    int(replace),
                    settings.digest(),
                    round(settings.worker.lease * 1000),
                    round(fleet.idempotency_ttl * 1000),
                    round(fleet.history * 1000),
                    fleet.history_jobs,
                    *limit.table(settings),
                ],
            )
        ],
        fleet.enqueue_timeout,
    )
