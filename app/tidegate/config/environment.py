"""`TIDEGATE_*` variables: each names one key (`TIDEGATE_WORKER_LEASE`: worker.lease) and wins over it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.config.fault import Fault
from tidegate.config.field import Leaf, leaves
from tidegate.config.reader import Path, nearest

PREFIX = "TIDEGATE_"
CONFIG_VARIABLE = "TIDEGATE_CONFIG"
ACTOR_VARIABLE = "TIDEGATE_ACTOR"
RELEASE_VARIABLE = "TIDEGATE_RELEASE"

#: for this package's own tests; never settings
TEST_PREFIX = "TIDEGATE_TEST_"

#: where a test build stops or kills the process (tidegate.telemetry.faultpoint)
FAULTPOINT_VARIABLES = ("TIDEGATE_FAULTPOINTS", "TIDEGATE_FAULTPOINTS_DIR")

RESERVED = (CONFIG_VARIABLE, ACTOR_VARIABLE, *FAULTPOINT_VARIABLES)


def variables(root: type) -> dict[str, tuple[Path, Leaf]]:
    """Name of each variable → the key it gives."""
    known = {PREFIX + "_".join(path).upper(): (path, leaf) for path, leaf in leaves(root)}
    known[RELEASE_VARIABLE] = known["TIDEGATE_FLEET_RELEASE"]
    return known


def overlay(
    tables: Mapping[str, Any], environ: Mapping[str, str], root: type
) -> tuple[dict[str, Any], dict[Path, str], list[Fault]]:
    """The tables with the environment laid over them, which key came from which variable, and unknown names.

    An empty variable is as good as none: compose files and CI systems pass empty text for "not given".
    """
    known = variables(root)
    merged = _copy(tables)
    given: dict[Path, str] = {}
    faults: list[Fault] = []
    for variable, text in sorted(environ.items()):
        if (
            not variable.startswith(PREFIX)
            or variable.startswith(TEST_PREFIX)
            or variable in RESERVED
            or not text
        ):
            continue
        if variable not in known:
            names = tuple(name.removeprefix(PREFIX) for name in (*known, *RESERVED))
            near = nearest(variable.removeprefix(PREFIX), names)
            faults.append(Fault(variable, "unknown variable", near and PREFIX + near))
            continue
        path, leaf = known[variable]
        if _put(merged, path, leaf.kind.from_text(text)):
            given[path] = variable
    return merged, given, faults


def _copy(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copy(value) if isinstance(value, Mapping) else value for key, value in tables.items()}


def _put(tables: dict[str, Any], path: Path, value: Any) -> bool:
    """False if something that is not a table stands in the way; that is a fault of the file, reported as such."""
    *outer, last = path
    for key in outer:
        inner = tables.setdefault(key, {})
        if not isinstance(inner, dict):
            return False
        tables = inner
    tables[last] = value
    return True
