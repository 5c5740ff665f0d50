"""What names of queues, tenants, keys and resources may be: any non-empty Unicode text of at most 256 bytes."""

from __future__ import annotations

from tidegate.domain.errors import InvalidJob

#: longest name, in bytes of UTF-8; the keyspace encodes names, so no character is special
MAX_NAME_BYTES = 256

_EXPECTED = f"non-empty Unicode text of at most {MAX_NAME_BYTES} bytes in UTF-8"


def checked_name(value: object, where: str) -> str:
    """`value`, if it is a legal name; `where` says which argument it is. Raises InvalidJob."""
    if not isinstance(value, str):
        raise InvalidJob(f"of type {type(value).__name__}", where, _EXPECTED)
    if not value:
        raise InvalidJob("empty", where, _EXPECTED)
    try:
        size = len(value.encode())
    except UnicodeEncodeError as lone:
        raise InvalidJob(f"a lone surrogate at character {lone.start}", where, _EXPECTED) from None
    if size > MAX_NAME_BYTES:
        raise InvalidJob(f"{size} bytes", where, _EXPECTED)
    return value
