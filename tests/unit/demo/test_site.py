"""The demo's site: what a page does follows from its number alone; what is parsed is what it shows."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tidegate.demo.site import (
    BROKEN,
    BUSY_EACH,
    FLAKY_EACH,
    GONE,
    QUICK,
    SLOW,
    SLOW_EACH,
    Site,
    amounts,
    answer,
)
from tidegate.demo.tasks import parse


@pytest.mark.parametrize(
    ("page", "visit", "mended", "status", "seconds"),
    [
        (1, 1, False, 200, QUICK),
        (SLOW_EACH - 1, 1, False, 200, SLOW),
        (BUSY_EACH - 1, 1, False, 429, 0.0),
        (BUSY_EACH - 1, 2, False, 200, QUICK),
        (FLAKY_EACH - 1, 1, False, 503, QUICK),
        (FLAKY_EACH - 1, 2, False, 200, QUICK),
        (BROKEN, 1, False, 503, QUICK),
        (BROKEN, 9, False, 503, QUICK),
        (BROKEN, 10, True, 200, QUICK),
        (GONE, 1, True, 404, QUICK),
    ],
)
def test_what_a_visit_gets(page: int, visit: int, mended: bool, status: int, seconds: float) -> None:
    assert answer(page, visit, mended) == (status, seconds)


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return str(reply.read().decode())


def test_the_amounts_of_a_page_arrive() -> None:
    with Site() as site:
        assert parse(fetch(f"{site.url}/page/17")) == amounts(17)


def test_a_busy_page_says_when_to_come_again_and_a_broken_one_is_mended() -> None:
    with Site() as site:
        with pytest.raises(urllib.error.HTTPError) as busy:
            fetch(f"{site.url}/page/{BUSY_EACH - 1}")
        busy.value.close()
        assert (busy.value.code, busy.value.headers["Retry-After"]) == (429, "1")
        with pytest.raises(urllib.error.HTTPError) as broken:
            fetch(f"{site.url}/page/{BROKEN}")
        broken.value.close()
        site.mend()
        assert parse(fetch(f"{site.url}/page/{BROKEN}")) == amounts(BROKEN)
