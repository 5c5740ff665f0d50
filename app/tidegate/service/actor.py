"""Who changes something, and why: what the audit log keeps of every command that does."""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass

#: environment variable that names the person behind a command
VARIABLE = "TIDEGATE_ACTOR"


@dataclass(frozen=True, slots=True)
class Actor:
    """by: a name, for people. reason: free text; may be empty."""

    by: str
    reason: str = ""


def actor(by: str | None, reason: str | None) -> Actor:
    """The one that is named, else TIDEGATE_ACTOR, else the user of the operating system."""
    return Actor(by or os.environ.get(VARIABLE) or _user(), reason or "")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number without a name
        return str(os.getuid())
