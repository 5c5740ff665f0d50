"""The fleets of tests/integration/worker, with beat processes."""

from __future__ import annotations

from tests.integration.worker.conftest import make_stage

__all__ = ["make_stage"]
