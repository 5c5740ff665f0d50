"""Tenants in turn: shares of slot-seconds, whatever the number of lanes, the length of jobs, the order of arrival."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from itertools import groupby, pairwise

import pytest
from tests.lua.rig import Rig, limit

from tidegate.domain.job import ClaimedJob

Work = Mapping[str, tuple[int, tuple[str, ...]]]  #: tenant → (length of its jobs in ms, what else they need)


class Shop:
    """Slots that are always busy while there is work; the fleet's clock jumps to the next end."""

    def __init__(self, rig: Rig, slots: int, work: Work) -> None:
        self.rig, self.slots, self.work = rig, slots, dict(work)
        self.busy: list[tuple[int, int, ClaimedJob]] = []
        self.used: Counter[str] = Counter()
        self.starts: list[tuple[int, str]] = []
        self.now = rig.now
        self.waiting: Counter[str] = Counter()

    def stock(self) -> None:
        """Every tenant has more waiting than the slots can take."""
        for tenant, (_, resources) in self.work.items():
            while self.waiting[tenant] < 2 * self.slots:
                self.rig.put(*[""] * self.slots, tenant=tenant, resources=resources)
                self.waiting[tenant] += self.slots

    def run(self, milliseconds: int) -> Counter[str]:
        """Slot-ms that each tenant got in that time."""
        until, before = self.now + milliseconds, self.used.copy()
        while True:
            self.stock()
            while free := self.slots - len(self.busy):
                reply = self.rig.claim(min(free, 8))
                for job in reply.jobs:
                    self.waiting[job.tenant] -= 1
                    self.starts.append((self.now, job.tenant))
                    heapq.heappush(self.busy, (self.now + self.work[job.tenant][0], job.ref.fence, job))
                if not reply.jobs and not reply.more:
                    break
            if not self.busy or self.busy[0][0] > until:
                break
            end = self.busy[0][0]
            self.rig.tick(end - self.now)
            self.now = end
            while self.busy and self.busy[0][0] == end:
                _, _, job = heapq.heappop(self.busy)
                self.used[job.tenant] += self.work[job.tenant][0]
                self.rig.end(job)
        self.rig.tick(until - self.now)
        self.now = until
        return self.used - before

    def share(self, milliseconds: int) -> dict[str, float]:
        used = self.run(milliseconds)
        return {tenant: used[tenant] / used.total() for tenant in sorted(self.work)}


def weights(rig: Rig, **of: float) -> None:
    rig.limits(**{f"tenant__{tenant}": limit(weight=weight) for tenant, weight in of.items()})


def test_shares_follow_the_weights(rig: Rig) -> None:
    weights(rig, c=3)
    share = Shop(rig, 5, dict.fromkeys("abc", (200, ()))).share(20_000)
    assert share == pytest.approx({"a": 0.2, "b": 0.2, "c": 0.6}, abs=0.03)


def test_shares_are_of_time_and_not_of_jobs(rig: Rig) -> None:
    share = Shop(rig, 4, {"a": (2_000, ()), "b": (200, ())}).share(40_000)
    assert share == pytest.approx({"a": 0.5, "b": 0.5}, abs=0.05)


def test_shares_hold_where_a_shared_resource_is_the_bottleneck(rig: Rig) -> None:
    rig.limits(tenant__c=limit(weight=3), dep=limit(conc=2))
    share = Shop(rig, 6, dict.fromkeys("abc", (200, ("dep:r",)))).share(20_000)
    assert share == pytest.approx({"a": 0.2, "b": 0.2, "c": 0.6}, abs=0.05)


def test_a_hundred_lanes_get_no_more_than_one(rig: Rig) -> None:
    for n in range(100):
        rig.put(tenant="many", resources=(f"key:{n}",))
    rig.put(*[""] * 100, tenant="one")
    served = Counter(job.tenant for _ in range(10) for job in rig.take(4))
    assert abs(served["many"] - served["one"]) <= 1


def test_jobs_too_short_to_measure_are_still_served_in_turn(rig: Rig) -> None:
    """A tenant whose mean is nought must be charged something, or it would never give way."""
    for tenant in "ab":
        rig.put(*[""] * 60, tenant=tenant)
    for job in rig.take(8):
        rig.end(job)
    served = [job.tenant for job in rig.take(16)]
    assert abs(served.count("a") - served.count("b")) <= 1
    assert max(len(list(run)) for _, run in groupby(served)) <= 2


def test_a_newcomer_starts_where_the_others_are(rig: Rig) -> None:
    shop = Shop(rig, 4, {"a": (1_000, ())})
    shop.run(60_000)
    shop.work["b"] = (1_000, ())
    share = shop.share(20_000)
    assert share["b"] == pytest.approx(0.5, abs=0.06)
    assert longest_gap(shop, "a", shop.now - 20_000) <= 2_000


def test_idle_capacity_that_was_used_is_not_a_debt(rig: Rig) -> None:
    shop = Shop(rig, 10, {"a": (60_000, ())})
    shop.run(119_000)
    shop.work = {"a": (2_000, ()), "b": (2_000, ())}
    begin = shop.now
    shop.run(90_000)
    assert longest_gap(shop, "a", begin) <= 62_000
    assert longest_gap(shop, "b", begin) <= 62_000


def test_a_tenant_that_was_blocked_does_not_shut_the_others_out(rig: Rig) -> None:
    till = rig.now + 60_000
    rig.limits(dep=limit(till=till))
    shop = Shop(rig, 3, {"a": (500, ()), "b": (500, ("dep:g",))})
    shop.run(60_000)
    begin = shop.now
    shop.run(30_000)
    assert longest_gap(shop, "a", begin) <= 5_000
    assert longest_gap(shop, "b", begin) <= 1_000


def test_a_lead_is_measured_again_when_the_weight_changes(rig: Rig) -> None:
    rig.put("", tenant="a")
    job = rig.one()
    rig.put("", tenant="b")
    rig.tick(10_000)
    rig.end(job)
    rig.put("", tenant="a")
    before = rig.dump().passes("default")["a"] - rig.dump().book("default").vt
    weights(rig, a=5)
    after = rig.dump().passes("default")["a"] - rig.dump().book("default").vt
    assert after == pytest.approx(before / 5)


def test_estimates_are_taken_back(rig: Rig) -> None:
    """After its end a job has cost its tenant what it used, whatever was guessed at the claim."""
    for seconds in (2, 5, 1):
        rig.put("", tenant="a")
        rig.put("", tenant="b")  # so that the lead of a is not unbounded
        before = rig.dump().passes("default").get("a", 0.0)
        job = next(job for job in rig.take(2) if job.tenant == "a")
        rig.tick(seconds * 1_000)
        rig.end(job)
        assert rig.dump().passes("default")["a"] - before == pytest.approx(seconds, abs=1e-5)


def longest_gap(shop: Shop, tenant: str, begin: int) -> int:
    """Longest time without a start of that tenant since `begin`."""
    times = [begin, *(at for at, who in shop.starts if who == tenant and at >= begin), shop.now]
    return max(later - earlier for earlier, later in pairwise(times))
