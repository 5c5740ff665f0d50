"""The JSON Schema of tidegate.toml, for editors and CI of users; derived from the settings classes. Pure."""

from __future__ import annotations

import json
from typing import Any

from tidegate.config.field import Leaf, declarations
from tidegate.config.kind import NAME_BYTES
from tidegate.config.model import Settings

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def as_schema() -> dict[str, Any]:
    """The schema as a JSON value."""
    return {
        "$schema": DRAFT,
        "title": "tidegate.toml",
        "description": "Settings of a Tidegate fleet.",
        **_table(Settings),
    }


def as_text() -> str:
    """The schema as the text of docs/tidegate.schema.json."""
    return json.dumps(as_schema(), indent=2, ensure_ascii=False) + "\n"


def _table(cls: type) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    nested: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for key, declared in declarations(cls).items():
        if isinstance(declared, Leaf):
            shape = {**declared.kind.schema, "description": _described(declared.doc, declared.later)}
            if not declared.unset:
                shape["default"] = declared.kind.show(declared.default)
            if declared.at:
                nested.append((declared.at, shape))
            else:
                properties[key] = shape
        elif declared.named:
            properties[key] = {
                "type": "object",
                "description": _described(declared.doc, declared.later),
                "propertyNames": {"minLength": 1, "maxLength": NAME_BYTES},
                "additionalProperties": _table(declared.record),
            }
        else:
            properties[key] = {
                **_table(declared.record),
                "description": _described(declared.doc, declared.later),
            }
    for (*tables, last), shape in nested:
        target = properties
        for table in tables:
            target = target[table].setdefault("properties", {})
        # A section may have the same name as this key: then it is a table.
        target[last] = {"anyOf": [shape, properties[tables[-1]]["additionalProperties"]]}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _described(doc: str, later: bool) -> str:
    return f"{doc} (Checked only: this release does not act on it yet.)" if later else doc
