"""The HTTP side: `/metrics`, `/healthz`, `/readyz`, as one WSGI application and the server that runs it."""

from __future__ import annotations

import logging
import socket
import socketserver
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

log = logging.getLogger(__name__)

Page: TypeAlias = tuple[str, str]  #: status line, text

_INDEX = "200 OK", "/metrics\n/healthz\n/readyz\n"
_ALIVE = "200 OK", "the exporter runs\n"
_UNKNOWN = "404 Not Found", "there are /metrics, /healthz and /readyz\n"
_METHOD = "405 Method Not Allowed", "use GET\n"


def application(registry: CollectorRegistry, ready: Callable[[], Page]) -> WSGIApplication:
    """The pages. ready: what `/readyz` answers now."""
    metrics = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            body: Iterable[bytes] = metrics(environ, start)
            return body
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _send(start, _METHOD, ("Allow", "GET, HEAD"))
        match path:
            case "/":
                return _send(start, _INDEX)
            case "/healthz":
                return _send(start, _ALIVE)
            case "/readyz":
                return _send(start, ready())
        return _send(start, _UNKNOWN)

    return answer


def _send(start: StartResponse, page: Page, *more: tuple[str, str]) -> Iterable[bytes]:
    status, text = page
    body = text.encode()
    start(
        status,
        [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *more],
    )
    return [body]


class Handler(WSGIRequestHandler):
    """Requests are not logged: a scrape every few seconds is no news."""

    timeout = 10  #: seconds that a client may be silent in the middle of its request

    def log_message(self, format: str, *args: Any) -> None:
        """Only for who looks closely."""
        log.debug(format, *args)


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """A thread per request; none of them holds up the end of the process."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        """Listens. Raises OSError if the address cannot be used."""
        (self.address_family, _, _, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        super().__init__((str(address[0]), int(address[1])), Handler)

    def server_bind(self) -> None:
        """As in the base class, without its search for the host's name in the DNS, which may take many seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away or fell silent concerns nobody; the base class would print a traceback."""
        log.debug("a request from %s was not answered", client_address, exc_info=True)
