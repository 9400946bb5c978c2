"""The HTTP server of the demo and of models: uvicorn's settings, and the sites that it answers."""

import socket
import urllib.parse
from typing import Any

import uvicorn
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from electra_tf.platform.errors import UserError


def config(application: ASGIApp, address: str, **settings: Any) -> uvicorn.Config:
    """Returns uvicorn's settings for an application that listens at an address.

    At a loopback address, only the names of that address are accepted as Host: a page whose domain
    resolves to this machine sends its own (DNS rebinding). Requests that browsers send for other
    sites' pages are refused.
    """
    async def own_pages_only(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin, host = headers.get("origin"), headers.get("host", "")
        if origin is None or _hostname(origin) == _hostname(f"//{host}") != "":
            await application(scope, receive, send)
        else:
            await JSONResponse({"error": "the Origin is another site's page; use this server's "
                                         "own page, or send no Origin"}, 403)(scope, receive, send)

    hosts = ["localhost", "127.0.0.1", "::1", "[::1]"]
    return uvicorn.Config(
        TrustedHostMiddleware(own_pages_only, hosts if address in hosts else ["*"]),
        http=_Protocol, ws="none",
        lifespan="off", log_level="error", access_log=False, server_header=False,
        h11_max_incomplete_event_size=16 * 1024, **settings)


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket on which connections wait for the server; `UserError` for a taken port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UserError(f"can't listen at --host={host} --port={port}: {error.strerror or error}; "
                        "choose a free port from 1024 on and an address of this machine, like "
                        "127.0.0.1.") from error
    # Connections inherit the option. Without it a body waits 40 ms for the client's confirmation.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _hostname(address: str) -> str:
    try:
        return urllib.parse.urlsplit(address).hostname or ""
    except ValueError:
        return ""


class _Protocol(H11Protocol):
    """A connection that answers a client which has closed its sending side, and then closes."""

    _half_closed = False

    def eof_received(self) -> bool:
        cycle = self.cycle
        self._half_closed = bool(cycle and not cycle.more_body and not cycle.response_complete)
        return self._half_closed

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._half_closed:
            self.transport.close()
