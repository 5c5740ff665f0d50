"""A hand-made worker for the tests of guard and watchdog: a page, a watchdog, children, no Celery and no store.

Arguments, as JSON: limit (seconds), mode ("children" | "main"), open (does a body run?), guards (do children look
for themselves?), stuck ("" | "child" | "main": who sits in a C call that holds the interpreter lock).
Prints one JSON line {"children": [...], "subprocesses": [...], "watchdog": pid}, then renews the stamp for ever.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

from tidegate.worker import guard
from tidegate.worker.kennel import Kennel
from tidegate.worker.stamp import MODE_CHILDREN, MODE_MAIN, Stamp, boottime_ns, started_at

CHILDREN = 2


def hold_the_interpreter() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")  # years of work in C


def child(stamp: Stamp, index: int, order: dict[str, object], pipe: int) -> None:
    if order["guards"]:
        guard.start(stamp, index)
    else:
        os.setpgid(0, 0)
        stamp.enter(index, os.getpid(), started_at(os.getpid()))
    sleeper = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
    os.write(pipe, f"{sleeper.pid}\n".encode())
    if order["stuck"] == "child":
        hold_the_interpreter()
    while True:
        time.sleep(60)


def main() -> None:
    order = json.loads(sys.argv[1])
    mode = MODE_MAIN if order["mode"] == "main" else MODE_CHILDREN
    stamp = Stamp.create(int(order["limit"] * 1e9), mode)
    if order["open"]:
        stamp.admit(1, boottime_ns())
    kennel = Kennel(stamp)
    kennel.start()
    reader, writer = os.pipe()
    children = []
    for index in range(CHILDREN if mode == MODE_CHILDREN else 0):
        pid = os.fork()
        if pid == 0:
            child(stamp, index, order, writer)
        children.append(pid)
    sleepers = []
    with os.fdopen(reader) as lines:
        for _ in children:
            sleepers.append(int(lines.readline()))
    print(json.dumps({"children": children, "subprocesses": sleepers, "watchdog": kennel.pid}), flush=True)
    if order["stuck"] == "main":
        hold_the_interpreter()
    while True:
        stamp.confirm(boottime_ns())
        kennel.look()
        time.sleep(0.02)


main()
