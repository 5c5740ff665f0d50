from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import tidegate
from tidegate.telemetry import faultpoint
from tidegate.telemetry.faultpoint import FaultReached, Faults, Order, parse


def test_without_orders_a_point_is_an_empty_function() -> None:
    assert faultpoint.reach is faultpoint._nothing
    faultpoint.reach("any.place")


def test_orders_are_read() -> None:
    assert parse(" claim.sent=kill , settle=stop:3,x=raise:*,") == {
        "claim.sent": Order("kill", 1),
        "settle": Order("stop", 3),
        "x": Order("raise", 0),
    }


@pytest.mark.parametrize(
    "text", ["claim", "claim=die", "claim=kill:0", "claim=kill:x", "=kill", "Cl aim=kill"]
)
def test_an_order_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="TIDEGATE_FAULTPOINTS"):
        parse(text)


def test_the_nth_time_counts_for_each_name(tmp_path: Path) -> None:
    for directory in (None, tmp_path):
        faults = Faults(parse("a=raise:3"), directory)
        for _ in range(5):
            faults.reach("b")
        faults.reach("a")
        faults.reach("a")
        with pytest.raises(FaultReached, match="a"):
            faults.reach("a")
        faults.reach("a")


def test_a_star_means_each_time() -> None:
    faults = Faults(parse("a=raise:*"), None)
    for _ in range(3):
        with pytest.raises(FaultReached):
            faults.reach("a")


def test_each_place_of_the_application_has_a_name_of_its_own() -> None:
    names: Counter[str] = Counter()
    for path in Path(tidegate.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "reach" and node.args:
                match node.args[0]:
                    case ast.Constant(value=str(name)):
                        names[name] += 1
    assert [name for name, times in names.items() if times > 1] == []
    for name in names:
        parse(f"{name}=kill")
