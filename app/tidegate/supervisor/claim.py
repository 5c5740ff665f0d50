"""One supervisor per data directory: a lock that the kernel gives back however its holder ends."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate import embedded
from tidegate.embedded.lock import try_lock
from tidegate.embedded.place import Place
from tidegate.supervisor.errors import AlreadyUp

_STARTED, _FOUND = "started the store", "found the store running"


class Claim:
    """The directory is ours until `close`, or until this process ends.

    The file holds our pid and whether the store's server was started by us. It is emptied by a polite end only: what a
    killed supervisor had started is then known to belong to who comes after it.
    """

    def __init__(self, data_dir: Path) -> None:
        """Raises AlreadyUp, EmbeddedError."""
        place = Place.at(data_dir)
        place.prepare()
        self._file = place.root / "up.lock"
        descriptor = try_lock(self._file)
        if descriptor is None:
            raise AlreadyUp(_pid(self._file), str(self._file))
        self._descriptor: int = descriptor
        before = self._file.read_text().partition("\n")[2].strip()
        # asked before anybody starts one: the answer must be on disk when somebody kills us
        stopped = embedded.status(data_dir).state is embedded.State.STOPPED
        self.started_store = before == _STARTED or stopped
        self._write(f"{os.getpid()}\n{_STARTED if self.started_store else _FOUND}\n")

    def empty(self) -> None:
        """Nothing of ours is left: a polite end."""
        self._write("")

    def close(self) -> None:
        """The directory may be another's now."""
        os.close(self._descriptor)

    def _write(self, text: str) -> None:
        raw = text.encode()
        os.pwrite(self._descriptor, raw, 0)
        os.ftruncate(self._descriptor, len(raw))


def _pid(file: Path) -> int:
    first = file.read_text().partition("\n")[0]
    return int(first) if first.isdigit() else 0
