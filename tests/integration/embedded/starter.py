"""A process that asks for the embedded server: `python -m tests.integration.embedded.starter DIR [stay]`.

Prints the endpoint as JSON; with `stay` it then lives until it is killed.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from tidegate.embedded import ensure


def main() -> None:
    endpoint = ensure(Path(sys.argv[1]), timeout=30)
    print(json.dumps({"url": endpoint.url, "pid": endpoint.pid, "started": endpoint.started}), flush=True)
    if sys.argv[2:] == ["stay"]:
        signal.pause()


if __name__ == "__main__":
    main()
