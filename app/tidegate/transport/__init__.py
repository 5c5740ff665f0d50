"""L4: the kombu transport: publishes through the store and claims from it. Adapter only, no policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.transport.channel import Channel
    from tidegate.transport.transport import Transport

__all__ = ["Channel", "Transport"]


def __getattr__(name: str) -> Any:
    # kombu's redis transport imports redis-py and much else; a process that only reads settings needs none of it
    if name == "Transport":
        from tidegate.transport.transport import Transport

        return Transport
    if name == "Channel":
        from tidegate.transport.channel import Channel

        return Channel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
