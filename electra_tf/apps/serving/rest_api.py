"""Serves several models and versions with TensorFlow Serving's REST API.

    GET  /v1/models/NAME[/versions/N]             state of the versions
    GET  /v1/models/NAME[/versions/N]/metadata    signatures
    POST /v1/models/NAME[/versions/N]:predict     inputs in, outputs out
    GET  /monitoring/prometheus/metrics           metrics
    GET  /                                        a page to try the models

Addresses, bodies and status codes are those of https://www.tensorflow.org/tfx/serving/api_rest,
without :classify, :regress and labels of versions. Every error is {"error": "..."}.
"""

import asyncio
import contextlib
import dataclasses
import html
import http
import json
import pathlib
import socket
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping

import prometheus_client
import tensorflow as tf
import uvicorn
from prometheus_client import Counter, Gauge, Histogram
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from electra_tf.apps.serving import predict_json
from electra_tf.apps.serving.batching import LARGE, Batcher
from electra_tf.apps.serving.models import ModelVersions, error_reason, num_rows
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.platform import http_server
from electra_tf.platform.errors import one_line

_PAGE = pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8")
_REQUESTS = Counter("serving_requests", "Requests, including errors; 499: the client disconnected.",
                   ("model", "version", "status"))
_SECONDS = Histogram(
    "serving_request_seconds", "Seconds from a request's headers to the end of its answer.",
    ("model", "version"), buckets=(.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60))
_WAITING_ROWS = Gauge("serving_waiting_rows", "Rows of unanswered requests.")
_BUFFERED_BYTES = Gauge("serving_buffered_bytes", "Size of the bodies of unanswered requests.")


class Server(uvicorn.Server):
    """The uvicorn server of loaded models, with the handlers of all routes.

    A reverse proxy limits slow clients and requests per second: docs/deploy/nginx.conf.
    """

    def __init__(self, models: Mapping[str, ModelVersions], settings: ServerConfig):
        """Takes started models by name; `run()` serves them until a signal to stop."""
        self._models, self._settings = models, settings
        self._rows = _Quota(settings.max_waiting_rows, "--max_waiting_rows", _WAITING_ROWS)
        self._bytes = _Quota(
            int(settings.max_buffered_mib * 2**20), "--max_buffered_mib", _BUFFERED_BYTES)
        self._batcher = Batcher(settings)
        self._parsing = asyncio.Lock()
        routes = [Route("/", self._page), Route("/monitoring/prometheus/metrics", self._metrics)]
        for path in ("/v1/models/{name}", "/v1/models/{name}/versions/{version}"):
            routes += [Route(f"{path}:predict", self._predict, methods=["GET", "POST"]),
                       Route(path, self._status), Route(f"{path}/metadata", self._metadata)]
        application = Starlette(routes=routes, exception_handlers=dict.fromkeys(
            (tf.errors.OpError, HTTPException, ClientDisconnect, 500), _error_response))
        application.router.redirect_slashes = False
        super().__init__(http_server.config(
            _count_requests(application), settings.host, host=settings.host, port=settings.port,
            timeout_keep_alive=5, timeout_graceful_shutdown=60,
            limit_concurrency=settings.max_connections))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen, and prints the address of every model; uvicorn calls it."""
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        for name, model in self._models.items():
            newest = model.find(None)
            print(f"{name}, version {newest.version}: {self.address} "
                  f"(signatures: {', '.join(newest.signatures)}; Ctrl-C stops)", flush=True)
        self._refreshing = asyncio.create_task(self._refresh_models())

    async def _refresh_models(self) -> None:
        while self._settings.poll_seconds:
            await asyncio.sleep(self._settings.poll_seconds)
            for model in self._models.values():
                await asyncio.to_thread(model.refresh)

    async def _page(self, request: Request) -> Response:
        model = self._find(request.query_params.get("model", next(iter(self._models))))
        others = "".join(f'<a href="/?model={urllib.parse.quote(name)}">{html.escape(name)}</a> '
                         for name in self._models if name != model.name)
        return HTMLResponse(_PAGE.replace("{{others}}", others)
                            .replace("{{model_name}}", html.escape(model.name)))

    async def _metrics(self, _request: Request) -> Response:
        return Response(prometheus_client.generate_latest(),
                        headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})

    async def _status(self, request: Request) -> Response:
        model, number = self._find_version(request)
        known = [version for version in list(model.known.values())
                 if number in (None, str(version.number)) and version.state != "START"]
        if not known:
            model.find(number)  # Raises the error.
        return JSONResponse({"model_version_status": [
            {"version": str(version.number), "state": version.state,
             "status": {"error_code": "UNKNOWN" if version.error else "OK",
                        "error_message": version.error}}
            for version in sorted(known, key=lambda version: -version.number)]})

    async def _metadata(self, request: Request) -> Response:
        model, number = self._find_version(request)
        version = model.find(number)
        return JSONResponse({
            "model_spec": {"name": model.name, "signature_name": "",
                           "version": str(version.version)},
            "metadata": {"signature_def": {"signature_def": version.signature_defs}}})

    async def _predict(self, request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405)
        model, number = self._find_version(request)
        served = model.find(number)
        request.state.served = model.name, str(served.version)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise HTTPException(415, f"Content-Encoding: {encoding[:40]} isn't supported; send "
                                     "plain JSON")
        if "content-length" not in request.headers:
            raise HTTPException(411, "a body with Content-Length is needed")
        size = int(request.headers["content-length"])  # The HTTP parser accepts only numbers.
        refusal, max_size = self._bytes.refusal(size), int(self._settings.max_body_mib * 2**20)
        if size > max_size:
            refusal = HTTPException(413, f"the body is longer than {max_size} bytes "
                                         "(--max_body_mib)")
        if refusal:
            async for _ in request.stream():
                pass  # A client that is still sending would miss the answer.
            raise refusal
        with self._bytes.reserved(size):
            body = await request.body()
            # Parsing one large body at a time saves memory, and small ones do not wait.
            async with self._parsing if len(body) > LARGE else contextlib.nullcontext():
                signature, inputs, in_rows = await run_in_threadpool(
                    predict_json.parse, body, served, self._settings)
            with self._rows.reserved(num_rows(inputs)):
                outputs = await self._batcher.answer(signature, inputs)
                answer = await run_in_threadpool(predict_json.render, outputs, in_rows)
        return Response(answer, media_type="application/json")

    def _find_version(self, request: Request) -> tuple[ModelVersions, str | None]:
        return self._find(request.path_params["name"]), request.path_params.get("version")

    def _find(self, name: str) -> ModelVersions:
        if name not in self._models:
            raise HTTPException(404, f"Servable not found for request: {name[:100]}; this server "
                                     f"has {', '.join(self._models)}")
        return self._models[name]


async def _error_response(request: Request, error: Exception) -> Response:
    """Returns the response to a request that raised an exception: `{"error": "one line"}`."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)  # nginx's code, for the metrics only.
    message, status = f"the server failed: {type(error).__name__}; see its log", 500
    if isinstance(error, HTTPException):
        message, status = error.detail, error.status_code
        if message == http.HTTPStatus(status).phrase:  # The router gives no detail.
            message += f": {request.method} {request.url.path}"
    elif isinstance(error, tf.errors.OpError):
        status = 400 if isinstance(error, (  # As TensorFlow Serving does.
            tf.errors.InvalidArgumentError, tf.errors.FailedPreconditionError,
            tf.errors.OutOfRangeError)) else 500
        what = "refused the inputs" if status == 400 else "failed"
        message = f"the model {what}: {error_reason(error)}"
        if status == 500:
            print(one_line(f"{request.url.path}: {message}"), file=sys.stderr, flush=True)
    body = json.dumps({"error": one_line(message, 500)}, ensure_ascii=False) + "\n"
    return Response(body, status, {"Retry-After": "1"} if status == 503 else {},
                    "application/json")


def _count_requests(application: ASGIApp) -> ASGIApp:
    """Returns an application that counts requests; `state["served"]` is (model, version)."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begin, status, state = time.perf_counter(), 499, scope.setdefault("state", {})

        async def send_counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await application(scope, receive, send_counted)
        finally:
            served = state.get("served", ("", ""))
            _REQUESTS.labels(*served, status).inc()
            _SECONDS.labels(*served).observe(time.perf_counter() - begin)

    return answer


@dataclasses.dataclass
class _Quota:
    """An amount of waiting work, in rows or bytes, that has an upper limit."""

    max_amount: int
    flag: str
    gauge: Gauge
    amount: int = 0

    def refusal(self, amount: int) -> HTTPException | None:
        """Returns the error (503) of a request that exceeds the limit; one alone never does."""
        if self.amount and self.amount + amount > self.max_amount:
            return HTTPException(503, f"too many requests are waiting ({self.flag}); retry later")
        return None

    @contextlib.contextmanager
    def reserved(self, amount: int) -> Iterator[None]:
        """Adds an amount until the context ends, or raises the refusal."""
        if refusal := self.refusal(amount):
            raise refusal
        self.amount += amount
        self.gauge.inc(amount)
        try:
            yield
        finally:
            self.amount -= amount
            self.gauge.dec(amount)
