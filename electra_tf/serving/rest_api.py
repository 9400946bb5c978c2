"""TensorFlow Serving's REST API for one version of one model, as an ASGI application.

    GET  /v1/models/NAME[/versions/N]             whether it is there
    GET  /v1/models/NAME[/versions/N]/metadata    its signatures
    POST /v1/models/NAME[/versions/N]:predict     inputs in, outputs out
    GET  /                                        a page to try it out

Addresses, bodies and status codes are those of https://www.tensorflow.org/tfx/serving/api_rest;
:classify and :regress, which take tf.Example, are not offered. Every error is {"error": "..."}.
"""

import html
import json
import pathlib
from typing import Any

import tensorflow as tf
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from electra_tf.serving import errors, predict_request, request_body
from electra_tf.serving.batching import Batcher, BatchingConfig
from electra_tf.serving.errors import RequestError
from electra_tf.serving.request_body import Limits
from electra_tf.serving.saved_models import ServedModel

_PAGE = pathlib.Path(__file__).with_name("page.html")
# The page has its style and script inside; nothing is loaded, and nothing but this server asked.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
                               "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}


class _NameConvertor(StringConvertor):
    """A part of an address up to the next slash or colon: `NAME:predict` is a name and a verb."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())


def application(model: ServedModel, batching: BatchingConfig, limits: Limits) -> Starlette:
    """Returns the ASGI application.

    Args:
        model: what is served.
        batching: how concurrent requests are joined.
        limits: what a request may take.
    """
    api = _Api(model, Batcher(batching), limits)
    model_path = "/v1/models/{name:name}"
    routes = [Route("/", api.page)]
    for path in (model_path, model_path + "/versions/{version:int}"):
        routes += [Route(path, api.status), Route(f"{path}/metadata", api.metadata),
                   Route(path + ":{verb:name}", api.predict, methods=["POST"])]
    return Starlette(routes=routes, exception_handlers={
        RequestError: _refused, tf.errors.OpError: _refused_by_graph, HTTPException: _no_route,
        ClientDisconnect: _gone, 500: _failed})


class _Api:
    """The routes."""

    def __init__(self, model: ServedModel, batcher: Batcher, limits: Limits):
        self._model = model
        self._batcher = batcher
        self._limits = limits
        self._page = _PAGE.read_text(encoding="utf-8").replace(
            "{{model_name}}", html.escape(model.name))

    async def page(self, _request: Request) -> Response:
        return Response(self._page, media_type="text/html", headers=_PAGE_HEADERS)

    async def status(self, request: Request) -> Response:
        self._check_model(request)
        return _json({"model_version_status": [
            {"version": str(self._model.version), "state": "AVAILABLE",
             "status": {"error_code": "OK", "error_message": ""}}]})

    async def metadata(self, request: Request) -> Response:
        self._check_model(request)
        return _json({
            "model_spec": {"name": self._model.name, "signature_name": "",
                           "version": str(self._model.version)},
            "metadata": {"signature_def": {"signature_def": self._model.signature_defs}}})

    async def predict(self, request: Request) -> Response:
        self._check_model(request)
        if request.path_params["verb"] != "predict":
            raise RequestError(f"only :predict is served here, not :{request.path_params['verb']}")
        body = await request_body.read(request, self._limits)
        # Large bodies and answers take a while to parse and write; others are served meanwhile.
        asked = await run_in_threadpool(
            predict_request.parse, body, self._model, max_rows=self._limits.max_request_rows)
        outputs = await self._batcher.predict(asked.signature, asked.inputs)
        return await run_in_threadpool(
            lambda: _json(predict_request.render(outputs, asked.format)))

    def _check_model(self, request: Request) -> None:
        name, version = request.path_params["name"], request.path_params.get("version")
        if name != self._model.name:
            raise RequestError(f"Servable not found for request: {name!r}; this server has "
                               f"{self._model.name!r}", 404)
        if version not in (None, self._model.version):
            raise RequestError(f"Servable not found for request: version {version} of {name!r}; "
                               f"this server has version {self._model.version}", 404)


def _json(content: dict[str, Any], status: int = 200, headers: dict | None = None) -> Response:
    """NaN and infinities are written as such, as TensorFlow Serving does."""
    return Response(json.dumps(content, ensure_ascii=False) + "\n", status, headers,
                    media_type="application/json")


async def _refused(_request: Request, error: RequestError) -> Response:
    return _json({"error": str(error)}, error.status)


async def _refused_by_graph(request: Request, error: tf.errors.OpError) -> Response:
    return await _refused(request, errors.from_graph(error))


async def _no_route(request: Request, error: HTTPException) -> Response:
    where = f"{request.method} {request.url.path}"
    return _json({"error": f"{error.detail}: {where}"}, error.status_code, error.headers)


async def _gone(_request: Request, _error: ClientDisconnect) -> Response:
    return Response(status_code=499)  # Nobody reads it.


async def _failed(_request: Request, error: Exception) -> Response:
    return _json({"error": f"the server failed: {type(error).__name__}; its log says more"}, 500)
