"""Serves the demo's page and answers its requests."""

import asyncio
import pathlib

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from electra_tf.apps.demo.replaced_tokens import DemoRequest, ReplacedTokenDetection
from electra_tf.core import http_server, strict_json
from electra_tf.reporting import pages

_MAX_BYTES = 128 * 1024  # Largest size of a request's body.


def server(detection: ReplacedTokenDetection, *, example: DemoRequest, comparison: str = "",
           address: str = "127.0.0.1", max_waiting_requests: int = 32) -> uvicorn.Server:
    """Returns the server of the page; `run(sockets=[...])` answers until a signal.

    The page shows `example` first, and `comparison` of the run with measured ones if it isn't "".
    One sentence is computed at a time; more than `max_waiting_requests` receive 503.
    """
    # The page, and the limits of requests.
    page = pages.render(pathlib.Path(__file__).with_name("page.html"), source=detection.source,
                        comparison=comparison, example=example)
    waiting, computing = asyncio.Semaphore(max_waiting_requests), asyncio.Lock()

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(page, headers=pages.HEADERS)

    async def replace(request: Request) -> Response:
        if waiting.locked():
            raise HTTPException(503, "too many requests wait for an answer; try again")
        # One sentence after another: waiting requests hold their bodies, not the networks' memory.
        async with waiting:
            body = await http_server.read_body(request, _MAX_BYTES, "; shorten the sentence")
            try:
                content = strict_json.loads(body, DemoRequest)
            except strict_json.Unreadable as error:
                raise HTTPException(400, str(error)) from error
            async with computing:
                return JSONResponse(await run_in_threadpool(detection.answer, content))

    # 64 connections at most, of which half may wait for the networks.
    return http_server.server(
        [Route("/", show_page), Route("/replace", replace, methods=["POST"])], address,
        limit_concurrency=64, timeout_graceful_shutdown=20)
