"""The parts of a fleet on one machine, and the command line of each."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from tidegate.config import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """One process that shall always run. words: what follows `tidegate` on its command line."""

    name: str
    words: tuple[str, ...]

    def command(self) -> list[str]:
        """To be run by this process: the part ends politely with it."""
        # -P: a user's own redis.py or queue.py in the working directory must not stand before the real ones
        return [sys.executable, "-P", "-m", "tidegate", "--ends-with", str(os.getpid()), *self.words]


def parts_of(settings: Settings, workers: int, beats: int, exporter: bool, loglevel: str) -> tuple[Part, ...]:
    """`worker-1`, …, `beat-1`, …, `exporter`: all with the settings file of `settings`."""
    file = ("--config", str(settings.source)) if settings.source else ()
    level = ("--loglevel", loglevel)
    found = [
        Part(f"worker-{number}", ("worker", *file, *level, "--hostname", f"worker-{number}@%h"))
        for number in range(1, workers + 1)
    ]
    found += [Part(f"beat-{number}", ("beat", *file, *level)) for number in range(1, beats + 1)]
    if exporter:
        found.append(Part("exporter", ("exporter", *file)))
    return tuple(found)
