"""What can go wrong with the exporter itself."""

from __future__ import annotations

from tidegate.domain.errors import TidegateError


class CannotListen(TidegateError):
    """The metrics address cannot be used: taken, not of this machine, or not allowed."""

    code = "cannot_listen"
    fields = ("address", "reason")

    def __init__(self, address: str, reason: str) -> None:
        self.address, self.reason = address, reason
        super().__init__(
            f"cannot listen on {address}: {reason}; end what listens there, or set another "
            f"observability.metrics_address (TIDEGATE_OBSERVABILITY_METRICS_ADDRESS)"
        )
