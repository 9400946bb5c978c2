"""Serves the demo's page and answers its requests."""

import asyncio
import pathlib

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from electra_tf.apps.demo.replaced_tokens import Question, ReplacedTokenDetection
from electra_tf.platform import http_server, strict_json
from electra_tf.platform.errors import UserError, one_line
from electra_tf.reporting import pages

_PAGE = pathlib.Path(__file__).with_name("page.html")
_MOST_BYTES = 128 * 1024
"""Largest size of a request's body."""
_MOST_CONNECTIONS = 64
_BODY_SECONDS = 20
"""Largest duration in seconds until a body has arrived."""


def server(detection: ReplacedTokenDetection, *, example: Question, level: str = "",
           address: str = "127.0.0.1", max_waiting_requests: int = 32) -> uvicorn.Server:
    """Returns the server of the page; `run(sockets=[...])` answers until a signal.

    Args:
        detection: the networks, which compute one sentence at a time.
        example: the question that the page shows first.
        level: comparison of the run with others; "" if unknown.
        address: the address to listen at, for `http_server.config`.
        max_waiting_requests: further requests receive 503.
    """
    page = pages.render(_PAGE, source=detection.source, level=level, example=example)
    places, networks = asyncio.Semaphore(max_waiting_requests), asyncio.Lock()

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(page, headers=pages.HEADERS)

    async def replace(request: Request) -> Response:
        if places.locked():
            raise HTTPException(503, "too many requests wait for an answer; try again")
        async with places:
            try:
                question = strict_json.loads(await _body(request), Question)
            except strict_json.Unreadable as error:
                raise HTTPException(400, str(error)) from error
            async with networks:
                return JSONResponse(await run_in_threadpool(detection.answer, question))

    application = Starlette(
        routes=[Route("/", show_page), Route("/replace", replace, methods=["POST"])],
        middleware=[Middleware(GZipMiddleware)],
        exception_handlers={HTTPException: _refused, UserError: _refused, 500: _refused})
    application.router.redirect_slashes = False
    return uvicorn.Server(http_server.config(
        application, address, limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=20,
        timeout_graceful_shutdown=20))


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise HTTPException(413, f"the request is longer than {_MOST_BYTES} bytes; "
                                        "shorten the sentence")
    except TimeoutError as error:
        raise HTTPException(408, f"the request took longer than {_BODY_SECONDS} s") from error
    return body


async def _refused(_request: Request, error: Exception) -> Response:
    """Returns {"error": ...}, one line."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": one_line(error.detail)}, error.status_code, error.headers)
    if isinstance(error, UserError):
        return JSONResponse({"error": str(error)}, 400)
    return JSONResponse({"error": f"the server failed: {type(error).__name__}; see its log"}, 500)
