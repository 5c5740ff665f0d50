"""The authority: decides what becomes of failed attempts."""

from __future__ import annotations

from tidegate.retry.authority import Authority
from tidegate.retry.policies import Policies
from tidegate.retry.policy import retry_policy

__all__ = ["Authority", "Policies", "retry_policy"]
