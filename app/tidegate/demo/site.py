"""The web site that the demo's jobs fetch: sometimes slow, sometimes busy (429), and broken in parts until mended.

What a page does follows from its number alone, so every run meets the same.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

#: seconds a page takes, and one in SLOW_EACH
QUICK, SLOW, SLOW_EACH = 0.04, 0.5, 23
#: one page in so many answers its first visitor 429, or 503
BUSY_EACH, FLAKY_EACH = 37, 53
#: pages from this number on are broken until the site is mended, and those from GONE on for ever
BROKEN, GONE = 1_000_000, 2_000_000
#: seconds that a busy page asks a visitor to stay away
RETRY_AFTER = 1
_ROWS = 5


def amounts(page: int) -> list[int]:
    """The figures on a page."""
    return [(page * 7919 + row * 104_729) % 1000 for row in range(_ROWS)]


def answer(page: int, visit: int, mended: bool) -> tuple[int, float]:
    """(HTTP status, seconds it takes) of the n-th visit to a page. Pure."""
    if page >= GONE:
        return 404, QUICK
    if page >= BROKEN:
        return (200 if mended else 503), QUICK
    if visit == 1 and page % BUSY_EACH == BUSY_EACH - 1:
        return 429, 0.0
    if visit == 1 and page % FLAKY_EACH == FLAKY_EACH - 1:
        return 503, QUICK
    return 200, SLOW if page % SLOW_EACH == SLOW_EACH - 1 else QUICK


class Site:
    """Serves on a free port of the loopback interface while the `with` block lasts."""

    def __init__(self) -> None:
        self._visits: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._mended = False
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.site = self

    @property
    def url(self) -> str:
        """Where it is; a page is `{url}/page/NUMBER`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def mend(self) -> None:
        """From now on the broken pages work."""
        self._mended = True

    def visited(self, page: int) -> tuple[int, float]:
        """Count a visit, and say what it gets."""
        with self._lock:
            self._visits[page] += 1
            visit = self._visits[page]
        return answer(page, visit, self._mended)

    def __enter__(self) -> Site:
        threading.Thread(target=self._server.serve_forever, name="demo-site", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    site: Site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A visitor that was killed in the middle is part of the demo."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        status, seconds = self.server.site.visited(int(name)) if name.isdigit() else (404, 0.0)
        time.sleep(seconds)
        body = _html(int(name)) if status == 200 else b"<p>not now</p>"
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", str(RETRY_AFTER))
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The ledger tells the story."""


def _html(page: int) -> bytes:
    rows = "".join(
        f"<tr><td>item {n}</td><td class=amount>{a}</td></tr>" for n, a in enumerate(amounts(page))
    )
    return f"<!doctype html><title>page {page}</title><table>{rows}</table>".encode()
