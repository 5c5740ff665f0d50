"""Offer one job by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidegate.client.one import send
from tidegate.client.producer import with_settings
from tidegate.client.receipt import Receipt
from tidegate.client.request import Call, Options
from tidegate.config import Settings


def enqueue(
    settings: Settings, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
) -> Receipt[Any]:
    """As `tidegate.enqueue`, for a fleet named by its settings. Code of tasks is not imported: what only a decorator
    says about the task (`effect`, timeouts) is not known here, what the settings say is.
    """
    sender = with_settings(settings)
    try:
        return send(sender, Call(task, args, kwargs, options))
    finally:
        sender.fleet.close()
