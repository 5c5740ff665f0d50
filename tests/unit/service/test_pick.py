"""In which order dead letters go back, and how many a queue has room for."""

from __future__ import annotations

from tidegate.service.pick import in_turn, red_at
from tidegate.store import Death


def death(name: str, tenant: str = "a") -> Death:
    return Death(name, 0, name, "", "default", tenant, "t", "max_retries", 0, 0)


def test_tenants_take_turns_the_oldest_of_each_first() -> None:
    deaths = [death("a1"), death("a2"), death("a3"), death("b1", "b"), death("b2", "b")]
    assert [one.job_id for one in in_turn(deaths)] == ["a1", "b1", "a2", "b2", "a3"]


def test_red_begins_at_nine_tenths() -> None:
    assert [red_at(limit) for limit in (10, 11, 100, 10_000)] == [8, 9, 89, 8_999]
