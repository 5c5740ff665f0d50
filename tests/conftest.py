"""Fixtures of all tests: they live in tests/harness/fixtures.py."""

from __future__ import annotations

pytest_plugins = ["tests.harness.fixtures"]
