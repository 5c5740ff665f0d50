"""The scenario: an idle fleet, a flood, a killed worker and a killed beat, dead letters, a replay, a verdict."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery import chord

from tidegate import embedded
from tidegate.client.one import send
from tidegate.client.producer import Producer, with_settings
from tidegate.client.receipt import Receipt
from tidegate.client.request import Call
from tidegate.config import load
from tidegate.demo import ledger
from tidegate.demo.site import Site, amounts
from tidegate.demo.stage import CHORD, IDLE, PERIOD, QUEUE, SETTINGS, TENANTS, Tenant
from tidegate.demo.verdict import Store as Facts
from tidegate.demo.verdict import Verdict, judge
from tidegate.domain.errors import QueueFull
from tidegate.domain.states import State
from tidegate.service import dead_letter
from tidegate.service.actor import Actor
from tidegate.service.pick import Filter
from tidegate.service.replay import Pace
from tidegate.store import Snapshot
from tidegate.supervisor import Supervisor
from tidegate.supervisor.family import descendants
from tidegate.worker.context import context

#: seconds that any one part of the play may take; then it goes on, and the verdict says what is missing
LONGEST = 90.0
#: seconds between two looks at the store
LOOK = 0.25


class Play:
    """One run in a folder of its own. say: a line for the reader. watch: the fleet in numbers, four times a second."""

    def __init__(self, folder: Path, say: Callable[[str], None], watch: Callable[[Snapshot], None]) -> None:
        self._folder, self._say, self._watch = folder, say, watch
        self._ledger = folder / "ledger.jsonl"
        self._receipts: list[tuple[Receipt[Any], int]] = []
        self._chords: list[tuple[Any, int]] = []
        self._idle_until = self._first_fire = self._last_fire = 0.0
        self._replayed = 0

    def run(self) -> Verdict:
        """About a minute. Raises TidegateError if the fleet cannot be started."""
        began = time.monotonic()
        config = self._folder / "tidegate.toml"
        config.write_text(SETTINGS, encoding="utf-8")
        for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
            del os.environ[name]  # a fleet of the user's must never be taken for the demo's
        os.environ[ledger.VARIABLE] = str(self._ledger)
        os.environ["TMPDIR"] = str(self._folder)  # what a killed worker leaves behind goes with the folder
        self._settings = load(config)
        try:
            with Site() as self._site, self._producer() as self._sender:
                with Supervisor(
                    self._settings, workers=2, beats=2, exporter=False, say=self._log
                ) as self._fleet:
                    self._idle()
                    self._flood()
                    self._dead_letters()
                    self._wait_for_fires()
                facts = self._facts()
        finally:
            embedded.stop(self._settings.data_dir)  # the supervisor leaves it to us, who use it
        due = [_name(at) for at in range(_next(self._first_fire), int(self._last_fire) + 1, PERIOD)]
        limits = {tenant.name: tenant.limit for tenant in TENANTS}
        seconds = time.monotonic() - began
        return judge(ledger.read(self._ledger), facts, limits, due, self._idle_until, seconds)

    # -- scenes

    def _idle(self) -> None:
        self._say("two workers and two beats start on the embedded server")
        self._until(lambda now: len(now.workers) == 2, "both workers are there")
        self._first_fire = time.time()
        self._say("the fleet has nothing to do: how long a job waits then")
        for number in range(IDLE):
            for tenant in TENANTS[1:]:
                receipt = self._send(tenant, 30_000 + number)
                if receipt is not None:
                    receipt.result(timeout=30)
        self._idle_until = time.monotonic()

    def _flood(self) -> None:
        jobs = {tenant.name: len(tenant.pages) for tenant in TENANTS}
        self._say(
            f"three tenants send jobs: {', '.join(f'{name} {number}' for name, number in jobs.items())}"
        )
        producers = [
            threading.Thread(target=self._produce, args=(tenant,), daemon=True) for tenant in TENANTS
        ]
        for producer in producers:
            producer.start()
        self._pass(4.0)
        self._kill("worker")
        self._pass(3.0)
        self._kill("beat")
        while any(producer.is_alive() for producer in producers):
            self._pass(LOOK)
        self._until(_at_rest, "everything has been done, or is a dead letter")

    def _dead_letters(self) -> None:
        plan = dead_letter.plan(self._settings, Filter())
        self._say(
            f"{len(plan.deaths)} dead letters; the site is mended as far as it can be, and they are replayed"
        )
        self._site.mend()
        who = Actor("demo", "the site is mended")
        self._replayed = dead_letter.replay(self._settings, plan, who, Pace()).replayed
        self._until(_at_rest, "the replayed jobs have been done, or have died again")

    def _wait_for_fires(self) -> None:
        self._last_fire = time.time()
        last = _name(_next(self._last_fire) - PERIOD)
        self._until(lambda _: self._has_fired(last), f"the fire of {last}")

    # -- producers

    def _produce(self, tenant: Tenant) -> None:
        for page in tenant.pages:
            while self._send(tenant, page) is None:
                pass
            time.sleep(tenant.pause)
        if tenant.noisy:
            return
        self._repeat(tenant)
        self._canvas(tenant)

    def _send(self, tenant: Tenant, page: int) -> Receipt[Any] | None:
        """One job; None if there is no room, after the time that the store asks to stay away."""
        asked: Call[Any] = Call("demo.fetch", (self._url(page),), {}, {"tenant": tenant.name})
        at = time.monotonic()
        try:
            receipt = send(self._sender, asked)
        except QueueFull as full:
            ledger.write("rejected", tenant=tenant.name, retry_after=full.retry_after)
            time.sleep(full.retry_after)
            return None
        ledger.write("accepted", receipt.task_id, tenant.name, at=at)
        self._receipts.append((receipt, page))
        return receipt

    def _repeat(self, tenant: Tenant) -> None:
        """The same idempotency key twice: a job, and a duplicate of it."""
        asked: Call[Any] = Call(
            "demo.fetch", (self._url(40_000),), {}, {"tenant": tenant.name, "idempotency_key": "once"}
        )
        for _ in range(2):
            at = time.monotonic()
            receipt = send(self._sender, asked)
            ledger.write(receipt.status, receipt.task_id, tenant.name, at=at)
            if receipt.status == "accepted":
                self._receipts.append((receipt, 40_000))

    def _canvas(self, tenant: Tenant) -> None:
        """Several pages at once, added up when all of them are there."""
        app, pages = self._sender.app, range(50_000, 50_000 + CHORD)
        at = time.monotonic()
        with context(tenant=tenant.name):
            header = [app.signature("demo.fetch", (self._url(page),)) for page in pages]
            result = chord(header, app=app)(app.signature("demo.total"))
        for one in [*result.parent.results, result]:
            ledger.write("accepted", one.id, tenant.name, at=at)
        self._chords.append((result, sum(sum(amounts(page)) for page in pages)))

    def _url(self, page: int) -> str:
        return f"{self._site.url}/page/{page}"

    # -- the fleet

    @contextmanager
    def _producer(self) -> Iterator[Producer]:
        sender = with_settings(self._settings)
        try:
            yield sender
        finally:
            sender.fleet.close()

    def _kill(self, kind: str) -> None:
        victim = next(child for child in self._fleet.children if child.name.startswith(kind))
        pids = [victim.pid, *(one.pid for one in descendants([victim.pid]))]
        ledger.write("killed", pids=pids)
        os.kill(victim.pid, signal.SIGKILL)
        self._say(f"{victim.name} (pid {victim.pid}) is killed with SIGKILL")

    def _log(self, name: str, line: str) -> None:
        with (self._folder / "fleet.log").open("a", encoding="utf-8") as log:
            log.write(f"{name} | {line}\n")

    # -- time

    def _pass(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._watch(self._sender.fleet.store.snapshot())
            time.sleep(LOOK)

    def _until(self, fact: Callable[[Snapshot], bool], what: str) -> None:
        deadline = time.monotonic() + LONGEST
        while not fact(now := self._sender.fleet.store.snapshot()):
            if time.monotonic() >= deadline:
                self._say(f"after {LONGEST:g} s still not so: {what}")
                return
            self._watch(now)
            time.sleep(LOOK)

    # -- the end

    def _has_fired(self, fire: str) -> bool:
        entries = ledger.read(self._ledger)
        return any(entry.kind == "begin" and entry.info.get("fire") == fire for entry in entries)

    def _facts(self) -> Facts:
        """What the store says, asked job by job; the fleet has stopped."""
        store, app = self._sender.fleet.store, self._sender.app
        states = {receipt.task_id: receipt.state() for receipt, _ in self._receipts}
        succeeded = [job for job, state in states.items() if state is State.SUCCEEDED]
        dead = [job for job, state in states.items() if state is State.DEAD]
        for result, _ in self._chords:
            succeeded += [one.id for one in [*result.parent.results, result] if one.state == "SUCCESS"]
        right = {receipt.task_id: sum(amounts(page)) for receipt, page in self._receipts}
        right |= {result.id: number for result, number in self._chords}
        wrong = [job for job in succeeded if job in right and app.AsyncResult(job).result != right[job]]
        return Facts(
            succeeded=set(succeeded) - set(wrong),
            dead=set(dead),
            unfinished=store.snapshot().queues[QUEUE].depth,
            replayed=self._replayed,
        )


def _at_rest(now: Snapshot) -> bool:
    return now.queues[QUEUE].depth == 0


def _next(seconds: float) -> int:
    """The first instant of the schedule after that one."""
    return int(seconds // PERIOD + 1) * PERIOD


def _name(seconds: int) -> str:
    """A logical fire time as `demo.tick` writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
