"""Finds the settings file, reads it and the environment, and gives settings or all that is wrong with them."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate.config.check import check
from tidegate.config.environment import CONFIG_VARIABLE, overlay
from tidegate.config.fault import ConfigError, Fault
from tidegate.config.lines import key_lines
from tidegate.config.model import Settings
from tidegate.config.reader import Reading

FILE_NAME = "tidegate.toml"


@dataclass(frozen=True, slots=True)
class Report:
    """What a look at the settings found. `settings` is None if there is any fault."""

    settings: Settings | None
    source: Path | None
    faults: tuple[Fault, ...]
    warnings: tuple[str, ...]


def load(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process.

    The file is `path`, else TIDEGATE_CONFIG, else `tidegate.toml` in the working directory if there is one; variables
    win over it. Raises ConfigError with every fault at once.
    """
    report = inspect(path, environ)
    if report.settings is None:
        raise ConfigError(str(report.source or ""), report.faults)
    return report.settings


def inspect(path: Path | None = None, environ: Mapping[str, str] | None = None) -> Report:
    """As `load`, but what is wrong is part of the answer."""
    environ = os.environ if environ is None else environ
    source = find(path, environ)
    tables: dict[str, Any] = {}
    reading = Reading(Settings)
    if source is not None:
        try:
            document = source.read_text(encoding="utf-8")
            tables = tomllib.loads(document)
        except (OSError, ValueError, RecursionError) as error:
            return Report(None, source, (_unreadable(error),), ())
        reading.lines = key_lines(document)
    tables, reading.variables, unknown = overlay(tables, environ, Settings)
    settings = reading.build(Settings, tables)
    check(settings, reading)
    faults = tuple(sorted((*reading.faults, *unknown), key=_position))
    warnings = tuple(reading.warnings)
    if faults:
        return Report(None, source, faults, warnings)
    root = source.absolute().parent if source else Path.cwd()
    settings = replace(settings, source=source.absolute() if source else None, root=root, warnings=warnings)
    return Report(settings, source, (), warnings)


def find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The settings file: the given one, else TIDEGATE_CONFIG's, else `tidegate.toml` here, else none."""
    named = path or (Path(environ[CONFIG_VARIABLE]) if environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return named
    here = Path(FILE_NAME)
    return here if here.exists() else None


def _position(fault: Fault) -> tuple[bool, int]:
    return fault.line is None, fault.line or 0


def _unreadable(error: OSError | ValueError | RecursionError) -> Fault:
    if isinstance(error, UnicodeDecodeError):
        return Fault(
            "", f"expected UTF-8 text, got byte 0x{error.object[error.start]:02x} at position {error.start}"
        )
    if isinstance(error, OSError):
        return Fault("", f"cannot be read: {error.strerror or error}")
    if isinstance(error, RecursionError):
        return Fault("", "cannot be read: tables or lists are nested too deep")
    text = str(error)
    place = re.search(r" \(at line (\d+), column \d+\)$", text)
    if place is None:
        return Fault("", f"not valid TOML: {text.removesuffix(' (at end of document)')} at the end")
    return Fault("", f"not valid TOML: {text[: place.start()]}", line=int(place[1]))
