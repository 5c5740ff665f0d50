"""An app that publishes nowhere: its messages are captured."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from celery import Celery

from tidegate import embedded
from tidegate.config import Settings
from tidegate.worker import identity
from tidegate.worker.install import install


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Defaults, under a name of its own: bindings are per fleet. A canvas opens a channel and thereby a server."""
    plain = Settings()
    directory = tmp_path / "data"
    yield replace(
        plain,
        fleet=replace(plain.fleet, name=f"u{uuid.uuid4().hex[:10]}"),
        broker=replace(plain.broker, data_dir=str(directory)),
    )
    embedded.stop(directory)


@pytest.fixture
def app(settings: Settings) -> Iterator[Celery]:
    """Installed, not connected: whatever reaches the store fails."""
    app = Celery("unit", set_as_current=False)
    install(app, settings)
    yield app
    identity.detach(app)
    app.close()
