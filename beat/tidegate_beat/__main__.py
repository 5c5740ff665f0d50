"""`python -m tidegate_beat [--config FILE] [--loglevel LEVEL]`: what `tidegate beat` starts."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from tidegate.domain.errors import TidegateError
from tidegate_beat.process import run


def main() -> int:
    """Exit code: 0 stopped politely, else that of the error (3 store unreachable, 4 configuration)."""
    parser = argparse.ArgumentParser(prog="tidegate beat")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--loglevel", default="info", choices=["debug", "info", "warning", "error"])
    given = parser.parse_args()
    logging.basicConfig(
        level=given.loglevel.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    try:
        run(given.config)
    except TidegateError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
