"""`doctor`: one look at a fleet that starts nothing and changes nothing, and what the rules say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidegate import embedded
from tidegate.config import Settings
from tidegate.embedded.endpoint import is_embedded
from tidegate.service.diagnosis import Facts, Finding, Level, diagnose, failure, of_settings
from tidegate.store import look


@dataclass(frozen=True, slots=True)
class Examination:
    """reachable: False if there was no store to look at."""

    findings: tuple[Finding, ...]
    reachable: bool = True

    @property
    def healthy(self) -> bool:
        """True if nothing has to be mended."""
        return all(one.level is not Level.FAILURE for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The stable JSON form."""
        return {"healthy": self.healthy, "findings": [one.as_dict() for one in self.findings]}


def examine(settings: Settings) -> Examination:
    """Look at the fleet and judge it. Raises StoreUnavailable, StoreRefused."""
    if not is_embedded(settings):
        return Examination(diagnose(Facts(settings, look(settings, settings.broker.url))))
    server = embedded.status(settings.data_dir)
    if server.endpoint is None:
        what = f"the embedded server in {settings.data_dir} is {server.state.value}"
        remedy = f"`tidegate up` starts it; its log is {server.log}"
        return Examination((*of_settings(settings), failure("server", what, remedy)), reachable=False)
    mode = settings.data_dir.stat().st_mode & 0o777
    return Examination(diagnose(Facts(settings, look(settings, server.endpoint.url), mode)))
