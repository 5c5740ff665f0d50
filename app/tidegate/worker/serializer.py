"""Our JSON for message bodies: strict, without hooks, so that what goes in comes out unchanged.

Celery's own `json` turns `{"__type__": "datetime", "__value__": "x"}` into something else on arrival (kombu's object
hook) and lets datetimes, UUIDs and bytes through as such pairs. Here a dict stays a dict, and what JSON cannot carry
is refused while the producer still holds it, with the place and the type.

The common case is one call of the C encoder and one walk; only a refusal pays for finding the place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NoReturn

from kombu.exceptions import EncodeError, SerializerNotInstalled
from kombu.serialization import registry

from tidegate.domain.errors import InvalidJob

NAME: Final = "tidegate-json"
CONTENT_TYPE: Final = "application/x-tidegate+json"

#: deepest nesting that is accepted, so that no worker's stack is too short for what a producer could still encode
MAX_DEPTH: Final = 200

Path = tuple[str | int, ...]

_SCALARS = frozenset({str, int, float, bool, type(None)})
_EXPECTED = "what JSON can carry: text, finite numbers, true, false, null, lists, objects with text keys"
_BARE = re.compile(r"[^\W\d]\w*")
#: parts of a message body (Celery's protocol 2) as its producer knows them
_PARTS = ("args", "kwargs", "")
#: times that Celery itself keeps in the options of a signature; it reads their ISO form as well
_SIGNATURE_TIMES = frozenset({("options", "eta"), ("options", "expires")})

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class NotJson(InvalidJob, EncodeError, SerializerNotInstalled):
    """An argument is not JSON.

    It is an EncodeError, so that Celery's tracer records a result that cannot be stored as the task's failure; and a
    SerializerNotInstalled because that is the one class which kombu's `dumps` does not wrap into another on its way
    to the caller of `apply_async`.
    """


def encode(data: Any) -> str:
    """The JSON text of `data`. Raises NotJson, naming the first place that is not JSON."""
    try:
        text = _encoder.encode(data)
        if not text.isascii():
            text.encode()  # a lone surrogate cannot leave as UTF-8
    except (TypeError, ValueError, RecursionError):
        return _encoder.encode(_strict_body(data))
    if not _is_plain(data):
        return _encoder.encode(_strict_body(data))
    return text


def decode(data: str | bytes | bytearray | memoryview) -> Any:
    """The value of a JSON text. Raises ValueError, also for the NaN and Infinity that Python would accept."""
    if not isinstance(data, str):
        data = bytes(data).decode()
    return json.loads(data, parse_constant=_refuse_constant)


def register() -> None:
    """Make the serializer known to kombu; again is harmless."""
    registry.register(NAME, encode, decode, content_type=CONTENT_TYPE, content_encoding="utf-8")


def checked(value: Any, where: str) -> Any:
    """`value` as plain lists and dicts, or NotJson with a place that starts with `where`."""
    return _strict(value, (where,), frozenset())


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _is_plain(data: Any) -> bool:
    """What the C encoder does not say: keys that are not text become text, and a lazy list looks empty."""
    level = [data]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                for key, value in container.items():
                    if not isinstance(key, str):
                        return False
                    if type(value) not in _SCALARS:
                        below.append(value)
            elif isinstance(container, list | tuple):
                if type(container) is not list and isinstance(container, list) and _is_lazy(container):
                    return False
                below.extend(value for value in container if type(value) not in _SCALARS)
        if not below:
            return True
        level = below
    return False


def _is_lazy(items: list[Any]) -> bool:
    """True for a list whose items are not in the list itself (Celery's `regen`): the C encoder would see none."""
    return list.__len__(items) != len(items)


def _strict_body(data: Any) -> Any:
    if isinstance(data, tuple) and len(data) == 3:
        return [
            _strict(part, (name,) if name else (), frozenset())
            for name, part in zip(_PARTS, data, strict=True)
        ]
    return _strict(data, (), frozenset())


def _strict(value: Any, path: Path, above: frozenset[int]) -> Any:
    """A plain copy of `value`, or NotJson. `above`: the containers that hold it, to notice a cycle."""
    if len(path) > MAX_DEPTH:
        raise NotJson(f"nested more than {MAX_DEPTH} levels deep", _shown(path[:6]) + "…", "flatter data")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        return _integer(value, path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"the number {value}", _shown(path), _EXPECTED)
        return value
    if isinstance(value, dict | list | tuple):
        if id(value) in above:
            raise NotJson("an object that contains itself", _shown(path), _EXPECTED)
        within = above | {id(value)}
        if isinstance(value, dict):
            return {_key(key, path): _strict(item, (*path, key), within) for key, item in value.items()}
        return [_strict(item, (*path, index), within) for index, item in enumerate(value)]
    if isinstance(value, datetime) and path[0] not in _PARTS and path[-2:] in _SIGNATURE_TIMES:
        return value.isoformat()
    raise NotJson(f"a value of type {_type_name(value)}", _shown(path), _EXPECTED)


def _text(value: str, path: Path) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as lone:
        raise NotJson(
            f"text with a lone surrogate at character {lone.start}", _shown(path), _EXPECTED
        ) from None
    return value


def _integer(value: int, path: Path) -> int:
    try:
        int.__repr__(value)
    except ValueError:  # Python's own limit on digits; the worker could not read it back either
        raise NotJson("a whole number with more digits than Python reads", _shown(path), _EXPECTED) from None
    return value


def _key(key: Any, path: Path) -> str:
    if not isinstance(key, str):
        raise NotJson(f"the key {key!r} of type {_type_name(key)}", _shown(path), _EXPECTED)
    return _text(key, path)


def _shown(path: Iterable[str | int]) -> str:
    """`kwargs.items[3].when`; keys that are no words are quoted."""
    shown = ""
    for part in path:
        if isinstance(part, str) and _BARE.fullmatch(part):
            shown += f".{part}" if shown else part
        else:
            shown += f"[{json.dumps(part)}]"
    return shown or "the value"


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


register()
