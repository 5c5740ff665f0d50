"""`python -m tidegate`: the same as the `tidegate` command, where only the interpreter is known."""

from __future__ import annotations

from tidegate.cli.main import main

if __name__ == "__main__":
    main(prog_name="tidegate")
