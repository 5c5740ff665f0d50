"""The Celery app that `tidegate worker` runs: the user's own, or one made of the modules that the settings name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

from celery import Celery

from tidegate.config import ConfigError, Fault, Settings
from tidegate.worker.install import install


def application(settings: Settings) -> Celery:
    """The app of `fleet.celery_app`, else a new one that imports `fleet.imports`; installed either way.

    Modules are found from the working directory and from the directory of the settings file. Raises ConfigError.
    """
    for directory in (str(settings.root.absolute()), os.getcwd()):  # noqa: PTH109 - as sys.path has it
        if directory not in sys.path:
            sys.path.insert(0, directory)
    named = settings.fleet.celery_app
    if named:
        return install(_named(settings, named), settings)
    for module in settings.fleet.imports:
        _find(settings, module)
    app = Celery("tidegate", include=list(settings.fleet.imports))
    app.set_default()  # @shared_task of the imported modules belongs to it, also in threads
    return install(app, settings)


def _named(settings: Settings, named: str) -> Celery:
    module, _, attribute = named.partition(":")
    try:
        app = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _fault(settings, f"{named} cannot be loaded: {error}") from error
    if not isinstance(app, Celery):
        raise _fault(settings, f"{named} is a {type(app).__name__}, expected a Celery app")
    return app


def _find(settings: Settings, module: str) -> None:
    """Celery imports it later; a name that nobody finds is a fault of the settings, and not sixty lines of its own."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError as error:  # of a package that it is in
        raise _fault(settings, f"{module} cannot be found: {error}", "fleet.imports") from error
    if found is None:
        where = " or ".join(dict.fromkeys((str(settings.root.absolute()), os.getcwd())))  # noqa: PTH109
        raise _fault(settings, f"there is no module {module} in {where}, nor installed", "fleet.imports")


def _fault(settings: Settings, message: str, key: str = "fleet.celery_app") -> ConfigError:
    return ConfigError(str(settings.source or ""), (Fault(key, message),))
