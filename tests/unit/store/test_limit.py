"""Limits of the settings in the numbers of the scripts."""

from __future__ import annotations

from tidegate.config import QueueSettings, Rate, Sections, Settings, TenantSettings
from tidegate.store import limit


def pairs(settings: Settings) -> dict[str, str]:
    flat = limit.table(settings)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def test_defaults_are_limits_and_not_their_absence() -> None:
    found = pairs(Settings())
    assert found["tenant:*"] == "1 10 100000 1 100000000 5000 0 0 0"
    assert found["queue:*"] == "1 -1 0 1 0 10000 0 0 0"
    assert found["tenant:default"] == found["tenant:*"]


def test_rates_are_exact_fractions() -> None:
    tenants = {
        "default": TenantSettings(
            rate=Rate(25_000, 3), burst=7, max_concurrency=None, max_depth=None, weight=2.5
        )
    }
    assert pairs(Settings(tenants=Sections(tenants)))["tenant:*"] == "2.5 -1 25000 3 7000000 -1 0 0 0"


def test_names_are_words() -> None:
    found = pairs(
        Settings(queues=Sections({"default": QueueSettings(), "a b:{c}": QueueSettings(max_depth=3)}))
    )
    assert found["queue:a%20b%3A%7Bc%7D"] == "1 -1 0 1 0 3 0 0 0"
