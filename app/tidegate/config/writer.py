"""Settings back to what a file would say: plain tables, canonical spelling. Pure."""

from __future__ import annotations

from typing import Any

from tidegate.config.field import Leaf, declarations

MASK = "***"


def as_mapping(settings: Any, *, mask: bool = False) -> dict[str, Any]:
    """The whole of a settings object as nested tables; keys without a value are left out.

    Reading the result gives an equal object. With `mask`, secret values are replaced by `***`.
    """
    result: dict[str, Any] = {}
    for key, declared in declarations(type(settings)).items():
        value = getattr(settings, key)
        if isinstance(declared, Leaf):
            if value is None and declared.unset:
                continue
            shown = (
                MASK if mask and declared.secret and value != declared.default else declared.kind.show(value)
            )
            *tables, last = declared.at or (key,)
            target = result
            for table in tables:
                target = target.setdefault(table, {})
            target[last] = shown
        elif declared.named:
            section = result.setdefault(key, {})
            section.update({name: as_mapping(item, mask=mask) for name, item in value.items()})
        else:
            result[key] = as_mapping(value, mask=mask)
    return result
