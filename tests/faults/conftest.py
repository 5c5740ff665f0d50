"""Fleets under test (stage.py of lease and of up)."""

from __future__ import annotations

from tests.integration.lease.stage import make_stage, proxied
from tests.integration.up.conftest import make_up

__all__ = ["make_stage", "make_up", "proxied"]
