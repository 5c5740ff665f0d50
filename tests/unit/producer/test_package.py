"""`import tidegate` is cheap, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidegate


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, tidegate; print({'celery', 'kombu', 'redis', 'click'} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_errors_can_be_caught_without_loading_celery() -> None:
    code = "import sys; from tidegate import QueueFull, InvalidJob; print('celery' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize("name", tidegate.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(tidegate, name).__module__.startswith("tidegate")


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="enqeue"):
        tidegate.enqeue
