"""What a server can answer instead of a result, named for layers that must not import redis."""

from __future__ import annotations

from redis.exceptions import NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError

__all__ = ["NoScriptError", "OutOfMemoryError", "ReadOnlyError", "ResponseError"]
