"""The demo's tasks: ordinary Celery tasks that fetch, parse and add up, and write in the ledger what they do."""

from __future__ import annotations

import urllib.error
import urllib.request
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from celery import shared_task

from tidegate.demo import ledger
from tidegate.worker.current import current_job


class _Amounts(HTMLParser):
    """Collects what stands in the cells of class `amount`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[int] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = ("class", "amount") in attrs

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found.append(int(data))
        self._inside = False


def parse(html: str) -> list[int]:
    """The amounts on a page. ValueError if one is no number."""
    parser = _Amounts()
    parser.feed(html)
    return parser.found


@shared_task(bind=True, name="demo.fetch")
def fetch(self: Any, url: str) -> int:
    """The sum of the amounts on one page. A busy site is asked again when it says; other errors are the authority's."""
    job = current_job()
    with ledger.attempt(job.task_id, job.tenant, job.attempt):
        try:
            with urllib.request.urlopen(url, timeout=10) as reply:
                return sum(parse(reply.read().decode()))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 429:
                raise self.retry(countdown=float(error.headers["Retry-After"])) from None
            raise RuntimeError(f"HTTP {error.code} from {url}") from None


@shared_task(name="demo.total")
def total(sums: list[int]) -> int:
    """The sum of what several pages gave."""
    job = current_job()
    with ledger.attempt(job.task_id, job.tenant, job.attempt):
        return sum(sums)


def _instant(at: datetime | None) -> str:
    return "" if at is None else at.astimezone(UTC).isoformat()


@shared_task(name="demo.tick")
def tick() -> None:
    """What the schedule fires."""
    job = current_job()
    with ledger.attempt(job.task_id, job.tenant, job.attempt, fire=_instant(job.logical_fire_time)):
        pass
