"""From plain tables to settings, collecting every fault on the way. Pure: knows neither files nor the environment."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidegate.config.fault import Fault, shortened, shown
from tidegate.config.field import Branch, Leaf, declarations, inherited, leaves
from tidegate.config.kind import NAME_BYTES, Mismatch, dotted, one_of, quoted
from tidegate.config.sections import Sections

T = TypeVar("T")
Path = tuple[str, ...]


@dataclass(slots=True)
class Reading:
    """One pass over one set of tables: where things stand, and what was found."""

    root: type
    lines: Mapping[Path, int] = field(default_factory=dict)
    variables: Mapping[Path, str] = field(
        default_factory=dict
    )  #: keys that the environment gave, and by which name
    faults: list[Fault] = field(default_factory=list)
    given: set[Path] = field(default_factory=set)  #: keys that somebody gave, right or wrong
    wrong: set[Path] = field(default_factory=set)  #: keys with a fault: what follows from them is not judged
    warnings: list[str] = field(default_factory=list)

    def fault(self, path: Path, what: str, hint: str = "", suffix: str = "") -> None:
        """Notes what is wrong at a key."""
        self.wrong.add(path)
        variable = self.variables.get(path)
        if variable:
            self.faults.append(Fault(variable + suffix, what, hint))
        else:
            place = dotted(tuple(shortened(key) for key in path))
            self.faults.append(Fault(place + suffix, what, hint, self.line(path)))

    def warn(self, path: Path, what: str) -> None:
        """Notes what is legal but deserves a look."""
        variable = self.variables.get(path)
        line = None if variable else self.line(path)
        self.warnings.append(str(Fault(variable or dotted(path), what, line=line)))

    def line(self, path: Path) -> int | None:
        """The line of the key, or of the nearest table around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None

    def build(self, cls: type[T], raw: object, path: Path = (), base: T | None = None) -> T:
        """An object of `cls`; keys that are absent or wrong have the value of `base`, or the default."""
        known = dict(declarations(cls))
        values = {key: getattr(base, key) for key in inherited(cls, raw)} if base is not None else {}
        if not isinstance(raw, Mapping):
            self.fault(path, f"expected a table, got {shown(raw)}")
            return cls(**values)
        for key, declared in declarations(cls).items():
            if isinstance(declared, Leaf) and declared.at:
                del known[key]
                raw, value = _take(raw, declared.at)
                if value is not None:
                    self._leaf(values, key, declared, value, declared.at)
        for key, value in raw.items():
            here = (*path, key)
            match known.get(key):
                case None:
                    self._unknown(key, value, path, tuple(known))
                case Leaf() as leaf:
                    self._leaf(values, key, leaf, value, here)
                case Branch() as branch:
                    values[key] = self._branch(branch, value, here, values.get(key))
        return cls(**values)

    def _leaf(self, values: dict[str, Any], key: str, declared: Leaf, raw: object, path: Path) -> None:
        self.given.add(path)
        try:
            values[key] = declared.kind.parse(raw)
        except Mismatch as wrong:
            got = "a value that is not shown" if declared.secret else shown(wrong.got)
            hint = "" if declared.secret else nearest(wrong.got, wrong.choices)
            self.fault(path, f"expected {wrong.expected}, got {got}", quoted(hint) if hint else "", wrong.at)
            return
        if declared.later and (declared.acted_on is None or values[key] != declared.acted_on):
            self.warn(path, "checked, but this release does not act on it yet")

    def _branch(self, declared: Branch, raw: object, path: Path, base: Any) -> Any:
        mark = len(self.warnings)
        if declared.named:
            result: Any = self._named(declared, raw, path)
        else:
            result = self.build(declared.record, raw, path, base)
        if declared.later and raw:
            del self.warnings[mark:]  # one warning for the section says it all
            self.warn(path, "checked, but this release does not act on this section yet")
        return result

    def _named(self, declared: Branch, raw: object, path: Path) -> Sections[Any]:
        if not isinstance(raw, Mapping):
            self.fault(path, f"expected a table of tables, got {shown(raw)}")
            raw = {}
        sections: dict[str, Any] = {}
        if declared.inherits:
            sections["default"] = self.build(declared.record, raw.get("default", {}), (*path, "default"))
        for name, item in raw.items():
            here = (*path, name)
            if name in sections:  # `default`, the base of the others
                continue
            if not isinstance(item, Mapping) and name in declarations(declared.record):
                self.fault(
                    here, "this key belongs in a section with a name", dotted((*path, "default", name))
                )
            elif not 1 <= len(name.encode()) <= NAME_BYTES:
                self.fault(
                    here, f"expected a name of 1 to {NAME_BYTES} bytes, got {len(name.encode())} bytes"
                )
            else:
                base = sections["default"] if declared.inherits else None
                sections[name] = self.build(declared.record, item, here, base)
        return Sections(sections)

    def _unknown(self, key: str, raw: object, path: Path, known: tuple[str, ...]) -> None:
        what = "unknown section" if isinstance(raw, Mapping) else "unknown key"
        near = nearest(key, known)
        elsewhere = [place for place, _ in leaves(self.root) if place[-1] == key and place[:-1] != path]
        if near:
            self.fault((*path, key), what, dotted((near,)))
        elif elsewhere:
            self.fault((*path, key), f"{what} here", dotted(elsewhere[0]))
        else:
            self.fault((*path, key), f"{what}; expected {one_of(known)}")


def nearest(given: object, known: tuple[str, ...]) -> str:
    """The known word that the given one comes closest to; empty if none is close."""
    if not isinstance(given, str):
        return ""
    folded = {word.casefold(): word for word in known}
    close = difflib.get_close_matches(given.casefold().replace("-", "_"), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else ""


def _take(raw: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Any], Any]:
    """The tables without the key at `path`, and its value; None if it is absent, or a table of that name."""
    key, *rest = path
    inner = raw.get(key)
    if not rest:
        if inner is None or isinstance(inner, Mapping):
            return raw, None
        return {name: value for name, value in raw.items() if name != key}, inner
    if not isinstance(inner, Mapping):
        return raw, None
    remaining, value = _take(inner, tuple(rest))
    return {**raw, key: remaining}, value
