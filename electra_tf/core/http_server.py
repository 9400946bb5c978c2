"""The HTTP server of the demo and of models: uvicorn's settings, connections, sites and bodies."""

import asyncio
import http
import json
import socket
import urllib.parse
from collections.abc import Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from electra_tf.core.errors import UserError, one_line

_BODY_SECONDS = 20
"""Longest time in which a body must arrive."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def server(routes: Sequence[Route], address: str, **settings: Any) -> uvicorn.Server:
    """Returns the server of some routes; `run(sockets=[listen(address, port)])` starts it.

    Errors are {"error": "one line"}: `UserError` is 400, and other exceptions are 500.
    At a loopback address, only the names of that address are accepted as Host: a page whose domain
    resolves to this machine sends its own (DNS rebinding). Requests that browsers send for other
    sites' pages are refused.
    """
    application = Starlette(
        routes=routes,
        exception_handlers=dict.fromkeys((HTTPException, UserError, 500), _error_response))
    application.router.redirect_slashes = False

    async def own_pages_only(scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin, host = headers.get("origin"), _hostname(f"//{headers.get('host', '')}")
        # Browsers name the site they believe to be at in Host, and the page that asks in Origin.
        answer: ASGIApp = application
        if address in _LOOPBACK and host not in _LOOPBACK:
            answer = JSONResponse({"error": "the Host must be a name of this machine: "
                                            f"{', '.join(_LOOPBACK)}"}, 400)
        elif origin is not None and not _hostname(origin) == host != "":
            answer = JSONResponse({"error": "the Origin is another site's page; use this server's "
                                            "own page, or send no Origin"}, 403)
        await answer(scope, receive, send)

    # Only HTTP/1.1, without WebSockets; headers of at most 16 KiB.
    return uvicorn.Server(uvicorn.Config(
        own_pages_only, http="h11", ws="none", lifespan="off", log_level="error",
        access_log=False, server_header=False, h11_max_incomplete_event_size=16 * 1024,
        **settings))


async def _error_response(request: Request, error: Exception) -> Response:
    message, status = f"the server failed: {type(error).__name__}; see its log", 500
    if isinstance(error, HTTPException):
        message, status = error.detail, error.status_code
        if message == http.HTTPStatus(status).phrase:  # The router gives no detail.
            message += f": {request.method} {request.scope['path']}"
    elif isinstance(error, UserError):
        message, status = str(error), 400
    body = json.dumps({"error": one_line(message, 500)}, ensure_ascii=False) + "\n"
    return Response(body, status, getattr(error, "headers", None), "application/json")


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


async def read_body(request: Request, max_bytes: int, fix: str) -> bytes:
    """Returns the body of a request, or raises HTTPException: 413 and `fix` for more bytes.

    Counts what arrives, because Content-Length may be missing or wrong. The rest of a body that is
    too long is dropped, because a client that is still sending would miss the answer.
    """
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= max_bytes:
                    body += chunk
    except TimeoutError as error:
        if size <= max_bytes:
            raise HTTPException(
                408, f"the body took longer than {_BODY_SECONDS} s to arrive") from error
    except ClientDisconnect as error:
        raise HTTPException(400, "the client disconnected") from error
    if size > max_bytes:
        raise HTTPException(413, f"the body is longer than {max_bytes} bytes{fix}")
    return bytes(body)


def _hostname(address: str) -> str:
    try:
        return urllib.parse.urlsplit(address).hostname or ""
    except ValueError:
        return ""
