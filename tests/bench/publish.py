"""Publishes N jobs and prints the rate per second: `python -m tests.bench.publish single|bulk N`."""

from __future__ import annotations

import sys
import time

from tests.bench.fleet import noop

import tidegate


def main() -> None:
    """One warm-up message, then the clock."""
    how, number = sys.argv[1], int(sys.argv[2])
    noop.delay()
    start = time.perf_counter()
    if how == "single":
        for _ in range(number):
            noop.delay()
    else:
        for receipt in tidegate.enqueue_many([tidegate.Call(noop)] * number):
            if isinstance(receipt, Exception):
                raise receipt
    print(number / (time.perf_counter() - start))


if __name__ == "__main__":
    main()
