"""The walk of a replay through its plan, at a real door: order, turns, and where it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.lua.conftest import MakeRig
from tests.lua.rig import UNLIMITED, Rig

from tidegate.config import QueueSettings, TenantSettings
from tidegate.domain.states import State
from tidegate.service.actor import Actor
from tidegate.service.replay import Pace, Result, run
from tidegate.store import Death, Desk, Replayed


class Watched(Desk):
    """Keeps what it was asked, batch by batch."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.store)
        self.asked: list[list[str]] = []

    def replay(
        self, deaths: Sequence[Death], *, by: str, reason: str, detail: Mapping[str, Any]
    ) -> list[Replayed]:
        self.asked.append([one.operation_id for one in deaths])
        return super().replay(deaths, by=by, reason=reason, detail=detail)


def dead(rig: Rig, *names: str, **fields: Any) -> list[Death]:
    """Jobs that waited too long; they get all the time they need when they come back."""
    rig.put(*names, queue_timeout_ms=60_000, **fields)
    rig.tick(60_000)
    rig.store.promote()
    return [one for one in Desk(rig.store).deaths() if one.operation_id in names]


def walk(rig: Rig, desk: Desk, deaths: Sequence[Death], pace: Pace | None = None, wait: int = 0) -> Result:
    """wait: ms of the store's clock that pass after each batch."""
    return run(
        desk, deaths, Actor("ann"), {}, pace or Pace(), lambda *_: None if not wait else rig.tick(wait)
    )


def test_what_a_hold_keeps_back_comes_again_in_its_order(rig: Rig) -> None:
    deaths = dead(rig, "x", "y", "z")
    rig.client.hset(f"{rig.store.key_prefix}meta", "hold", str(rig.now + 500))
    desk = Watched(rig)
    result = walk(rig, desk, deaths, wait=500)
    assert desk.asked == [["x", "y", "z"], ["x", "y", "z"]]
    assert (result.replayed, result.left) == (3, 0)


def test_a_queue_without_room_ends_it_for_that_queue_alone(make: MakeRig) -> None:
    rig = make(queues={"small": QueueSettings(max_depth=2)})
    small = [one for name in ("s1", "s2", "s3") for one in dead(rig, name, queue="small")]
    wide = dead(rig, "d1", "d2")
    desk = Watched(rig)
    result = walk(rig, desk, [small[0], small[1], wide[0], small[2], wide[1]], Pace(rate=1000.0))
    assert (result.replayed, result.left, set(result.stopped)) == (3, 2, {"queue:small"})
    desk = Watched(rig)
    result = walk(rig, desk, [small[1], small[2]], Pace(rate=1.5))
    assert desk.asked == [["s2"]], "once it is known to be full nobody asks it again"
    assert (result.replayed, result.left) == (0, 2)


def test_a_full_tenant_ends_it_for_that_tenant_alone(make: MakeRig) -> None:
    one = TenantSettings(max_concurrency=None, rate=None, max_depth=1)
    rig = make(tenants={"default": UNLIMITED, "t": one})
    first, second = dead(rig, "a", tenant="t"), dead(rig, "b", tenant="t")
    result = walk(rig, Watched(rig), [*first, *second, *dead(rig, "c")])
    assert (result.replayed, result.left, set(result.stopped)) == (2, 1, {"tenant:t"})
    assert rig.state("b") is State.DEAD


def test_no_more_than_wanted(rig: Rig) -> None:
    desk = Watched(rig)
    result = walk(rig, desk, dead(rig, "a", "b", "c"), Pace(most=2))
    assert (desk.asked, result.replayed, result.left) == ([["a", "b"]], 2, 1)
