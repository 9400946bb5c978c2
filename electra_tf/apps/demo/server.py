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

from electra_tf.apps.demo.replaced_tokens import DemoRequest, ReplacedTokenDetection
from electra_tf.platform import http_server, strict_json
from electra_tf.platform.errors import UserError, one_line
from electra_tf.reporting import pages

_MAX_BYTES = 128 * 1024  # Largest size of a request's body.
_MAX_BODY_SECONDS = 20  # Largest duration until a body has arrived.


def server(detection: ReplacedTokenDetection, *, example: DemoRequest, comparison: str = "",
           address: str = "127.0.0.1", max_waiting_requests: int = 32) -> uvicorn.Server:
    """Returns the server of the page; `run(sockets=[...])` answers until a signal.

    The page shows `example` first, and `comparison` of the run with measured ones if it isn't "".
    One sentence is computed at a time; more than `max_waiting_requests` receive 503.
    """
    page = pages.render(pathlib.Path(__file__).with_name("page.html"), source=detection.source,
                        comparison=comparison, example=example)
    waiting, computing = asyncio.Semaphore(max_waiting_requests), asyncio.Lock()

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(page, headers=pages.HEADERS)

    async def replace(request: Request) -> Response:
        if waiting.locked():
            raise HTTPException(503, "too many requests wait for an answer; try again")
        async with waiting:
            body = b""
            try:
                async with asyncio.timeout(_MAX_BODY_SECONDS):
                    async for chunk in request.stream():
                        body += chunk
                        if len(body) > _MAX_BYTES:
                            raise HTTPException(413, f"the request is longer than {_MAX_BYTES} "
                                                "bytes; shorten the sentence")
                content = strict_json.loads(body, DemoRequest)
            except TimeoutError as error:
                raise HTTPException(
                    408, f"the request took longer than {_MAX_BODY_SECONDS} s") from error
            except strict_json.Unreadable as error:
                raise HTTPException(400, str(error)) from error
            async with computing:
                return JSONResponse(await run_in_threadpool(detection.answer, content))

    application = Starlette(
        routes=[Route("/", show_page), Route("/replace", replace, methods=["POST"])],
        middleware=[Middleware(GZipMiddleware)],
        exception_handlers=dict.fromkeys((HTTPException, UserError, 500), _error_response))
    application.router.redirect_slashes = False
    return uvicorn.Server(http_server.config(
        application, address, limit_concurrency=64, timeout_keep_alive=20,
        timeout_graceful_shutdown=20))


async def _error_response(_request: Request, error: Exception) -> Response:
    """Returns {"error": ...}, one line."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": one_line(error.detail)}, error.status_code, error.headers)
    if isinstance(error, UserError):
        return JSONResponse({"error": str(error)}, 400)
    return JSONResponse({"error": f"the server failed: {type(error).__name__}; see its log"}, 500)
