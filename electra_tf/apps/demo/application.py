"""The page that shows ELECTRA's two networks at work, and what it asks, as an ASGI application.

    GET  /           the page
    POST /replace    {"sentence": ..., "mask_rate": ..., "temperature": ..., "seed": ...}

The answer is `replaced_tokens.Answer` as JSON; every error is {"error": "..."}.
"""

import asyncio
import concurrent.futures
import dataclasses
import html
import pathlib
import socket
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from electra_tf.apps.demo.replaced_tokens import Question, ReplacedTokenDetection
from electra_tf.apps.serving import answers, http_server, page, request_body
from electra_tf.apps.serving.admission import Admission, AdmissionLimits, Admitted
from electra_tf.apps.serving.connections import Population
from electra_tf.apps.serving.error_answers import HANDLERS
from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.strict_http import ConnectionLimits
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError

_PAGE = pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8")
_LIMITS = request_body.Limits(max_body_bytes=128 * 1024)
"""A sentence of 20,000 characters, of which some take six bytes in JSON."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person chooses."""

    max_connections: int = 64
    """More clients are answered with 503."""
    max_waiting_requests: int = 32
    """Beyond so many that are read and not yet answered: 503."""


def server(detection: ReplacedTokenDetection, settings: Settings,
           on_start: Callable[[], None]) -> http_server.Server:
    """Returns the server of the page; `on_start` is called when requests are answered.

    Raises:
        UserError: the system doesn't allow so many connections.
    """
    http_server.allow_files(settings.max_connections)
    return http_server.Server(
        application(detection, settings),
        Population(ConnectionLimits(max_connections=settings.max_connections)), on_start)


def serve(detection: ReplacedTokenDetection, listening: socket.socket, settings: Settings,
          on_start: Callable[[], None]) -> None:
    """Answers until a signal; arguments as for `server`, and a socket that listens."""
    server(detection, settings, on_start).run(sockets=[listening])


def application(detection: ReplacedTokenDetection, settings: Settings) -> ASGIApp:
    """Returns the ASGI application; requests are computed one after the other."""
    thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="networks")
    shown = _PAGE.replace("{{source}}", html.escape(detection.source))

    async def show_page(_request: Request) -> Response:
        return Response(shown, media_type="text/html", headers=page.HEADERS)

    async def replace(request: Request) -> Response:
        visit = request.state.visit
        body = await _body(request)
        visit.wait()
        question = _question(body)
        return await asyncio.get_running_loop().run_in_executor(
            thread, _answered, detection, question, answers.takes_gzip(request))

    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        return Response(status_code=499)  # Nobody reads it.

    routed = Starlette(
        routes=[Route("/", show_page), Route("/replace", replace, methods=["POST"])],
        exception_handlers={**HANDLERS, ClientDisconnect: gone})
    routed.router.redirect_slashes = False
    return Admitted(routed, Admission(AdmissionLimits(
        max_waiting_requests=settings.max_waiting_requests)))


async def _body(request: Request) -> bytes:
    try:
        body = await request_body.read(request, _LIMITS, request.state.visit)
        return request_body.unpack(body, _LIMITS) if request_body.is_packed(request) else body
    except RequestError as error:
        if error.status != 413:
            raise
        raise RequestError(f"the request is longer than {_LIMITS.max_body_bytes} bytes; "
                           "shorten the sentence", 413) from error


def _question(body: bytes) -> Question:
    try:
        return strict_json.loads(body, Question)
    except strict_json.Unreadable as error:
        # What a field's range says needs no other beginning.
        raise RequestError(str(error).removeprefix("is wrong: ")) from error


def _answered(detection: ReplacedTokenDetection, question: Question, pack: bool) -> Response:
    try:
        return answers.answer(dataclasses.asdict(detection.answer(question)), pack)
    except UserError as error:
        raise RequestError(str(error)) from error
