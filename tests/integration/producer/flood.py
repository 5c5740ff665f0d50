"""A producer that pushes as hard as it can, in every way: `python -m ... flood SECONDS SEED`; prints what it met."""

from __future__ import annotations

import datetime as dt
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from celery import Celery
from tests.integration.producer import work

import tidegate
from tidegate import QueueFull, Receipt, call, enqueue, enqueue_many

SOON = 0.3


def bulk() -> list[Any]:
    return list(enqueue_many(call(work.echo, number) for number in range(7)))


WAYS: dict[str, Callable[[], Any]] = {
    "delay": lambda: work.echo.delay(1),
    "bulk": bulk,
    "eta": lambda: work.echo.apply_async((1,), eta=dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SOON)),
    "countdown": lambda: work.echo.apply_async((1,), countdown=SOON),
    "enqueue": lambda: enqueue(work.echo, args=(1,), delay=SOON),
}


def main() -> None:
    """Until the time is over; the counts are exact, whatever was refused."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    app = Celery("flood")
    tidegate.install(app)
    app.set_default()
    app.set_current()
    choose = random.Random(seed)
    met: Counter[str] = Counter()
    others: list[str] = []
    slowest = 0.0
    print("ready", flush=True)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        way = choose.choice(list(WAYS))
        start = time.monotonic()
        try:
            found = WAYS[way]()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test wants to know
            found = error
        took = time.monotonic() - start
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one, QueueFull):
                met[f"{way} full"] += 1
                slowest = max(slowest, took)
                if not (
                    type(one) is QueueFull
                    and one.retry_after > 0
                    and one.limit == 100
                    and one.__cause__ is None
                ):
                    others.append(repr(one))
            elif isinstance(one, Exception):
                others.append(repr(one))
            else:
                met[f"{way} accepted"] += 1
                assert not isinstance(one, Receipt) or one.status == "accepted"
    print(json.dumps({"met": met, "others": others, "slowest": slowest}), flush=True)


if __name__ == "__main__":
    main()
