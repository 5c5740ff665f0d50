"""Fleets under test (stage.py)."""

from __future__ import annotations

from tests.integration.lease.stage import make_stage, proxied

__all__ = ["make_stage", "proxied"]
