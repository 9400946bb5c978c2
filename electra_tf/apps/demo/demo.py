r"""Shows in a browser what a pre-trained generator and discriminator do to a sentence.

    python -m electra_tf.apps.demo.demo --model_dir=runs/small

A page on which a sentence is masked, filled in by the generator and judged by the discriminator,
with the masking rate and the temperature as sliders. --model_dir is a pre-training run, or a
checkpoint of Google's or Hugging Face's with both networks. Stop it with Ctrl-C or SIGTERM.
"""

import asyncio
import pathlib
import signal
import socket
import typing

import uvicorn
from absl import flags
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from electra_tf.platform import command_line, storage, strict_json
from electra_tf.platform.errors import UserError, one_line
from electra_tf.reporting import pages

if typing.TYPE_CHECKING:
    from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection

GROUPS = {"Model": ("model_dir",), "Network": ("host", "port"),
          "Limits": ("max_connections", "max_waiting_requests")}
_PAGE = pathlib.Path(__file__).with_name("page.html")
_LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")
_MOST_BYTES = 128 * 1024
"""Size of a request's body."""
_BODY_SECONDS = 20
"""Time in which a body has to arrive."""


def main() -> None:
    """Listens, loads, serves.

    Raises:
        UserError: no checkpoint with both networks, or an address that cannot be used.
    """
    values = flags.FLAGS
    if not values.model_dir:
        raise UserError(f"--model_dir is needed: {values['model_dir'].help}")
    from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
    from electra_tf.checkpoints import formats  # TensorFlow takes seconds.

    signal.signal(signal.SIGTERM, _exit)
    with _listen(values.host, values.port) as listening:
        detection = ReplacedTokenDetection(formats.read(storage.path(values.model_dir)))
        host, port = listening.getsockname()[:2]
        print(f"{detection.source}: http://{f'[{host}]' if ':' in host else host}:{port} (open it "
              "in a browser; Ctrl-C stops)", flush=True)
        server(detection, local=values.host in _LOCAL, max_connections=values.max_connections,
               max_waiting_requests=values.max_waiting_requests).run(sockets=[listening])


def server(detection: "ReplacedTokenDetection", *, local: bool = True, max_connections: int = 64,
           max_waiting_requests: int = 32) -> uvicorn.Server:
    """Returns the server of the page; `run(sockets=[...])` answers until a signal.

    Args:
        detection: the networks, which compute one sentence after the other.
        local: accept the names of this machine as Host only, so that a page of another site cannot
            ask under a name of its own (DNS rebinding).
        max_connections: more are answered with 503.
        max_waiting_requests: more are answered with 503.
    """
    page = pages.render(_PAGE, source=detection.source)
    places, networks = asyncio.Semaphore(max_waiting_requests), asyncio.Lock()

    async def show_page(_request: Request) -> Response:
        return HTMLResponse(page, headers=pages.HEADERS)

    async def replace(request: Request) -> Response:
        from electra_tf.apps.demo.replaced_tokens import Question

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
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL if local else ["*"]),
                    Middleware(GZipMiddleware)],
        exception_handlers={HTTPException: _refused, UserError: _refused, 500: _refused})
    application.router.redirect_slashes = False
    return uvicorn.Server(uvicorn.Config(
        application, http="h11", ws="none", lifespan="off", log_level="error", access_log=False,
        server_header=False, limit_concurrency=max_connections, timeout_keep_alive=20,
        h11_max_incomplete_event_size=16 * 1024, timeout_graceful_shutdown=20))


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


def _listen(host: str, port: int) -> socket.socket:
    """Returns a socket that takes connections; they wait for the server."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UserError(f"can't listen at --host={host} --port={port}: {error.strerror or error}; "
                        "choose a free port from 1024 on and an address of this machine, like "
                        "127.0.0.1.") from error
    # Connections inherit it. Without it an answer's body waits 40 ms for the client's confirmation.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _exit(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("model_dir", None, "A pre-training run, or a checkpoint of Google's or "
                        "Hugging Face's that holds both networks.")
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0 for every address of "
                        "this machine. There is no password: use it in trusted networks only.")
    flags.DEFINE_integer("port", 8502, "Port; 0 for any that is free.", 0, 65535)
    flags.DEFINE_integer("max_connections", 64, "More are answered with 503.", lower_bound=1)
    flags.DEFINE_integer("max_waiting_requests", 32, "Requests that may wait for an answer; more "
                         "are answered with 503.", lower_bound=1)


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups=GROUPS)
