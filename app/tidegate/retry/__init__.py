"""The authority: decides what becomes of failed attempts."""

from __future__ import annotations

from tidegate.retry.authority import Authority
from tidegate.retry.policy import retry_policy

__all__ = ["Authority", "retry_policy"]
