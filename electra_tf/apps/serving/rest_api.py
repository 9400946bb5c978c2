"""Serves loaded models with TensorFlow Serving's REST API (tensorflow.org/tfx/serving/api_rest).

    GET  /v1/models/NAME[/versions/N]             state of the version
    GET  /v1/models/NAME[/versions/N]/metadata    signatures
    POST /v1/models/NAME[/versions/N]:predict     inputs in, outputs out
    GET  /                                        a page to try the models
"""

import asyncio
import contextlib
import pathlib
from collections.abc import Mapping

import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from electra_tf.apps.serving import predict_json
from electra_tf.apps.serving.models import ServedModel
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.core import http_server
from electra_tf.reporting import pages

_LARGE = 64 * 1024
"""Bytes of a body above which requests are answered one after another, which limits memory."""


def server(models: Mapping[str, ServedModel], config: ServerConfig) -> uvicorn.Server:
    """Returns a server of models by name; `run(sockets=[...])` answers until a signal."""
    one_large = asyncio.Lock()

    def find(name: str, version: str | None = None) -> ServedModel:
        model = models.get(name)
        if model is None or version not in (None, model.version):
            raise HTTPException(
                404, f"Servable not found for request: version {str(version or 'latest')[:20]} of "
                f"{name[:100]}; this server has " + ", ".join(
                    f"version {model.version} of {name}" for name, model in models.items()))
        return model

    async def page(request: Request) -> Response:
        # The page of one model, with links to those of others.
        name = request.query_params.get("model", next(iter(models)))
        find(name)
        return HTMLResponse(pages.render(
            pathlib.Path(__file__).with_name("page.html"), model_name=name,
            others=[other for other in models if other != name]), headers=pages.HEADERS)

    async def status(request: Request) -> Response:
        return JSONResponse({"model_version_status": [{
            "version": find(**request.path_params).version, "state": "AVAILABLE",
            "status": {"error_code": "OK", "error_message": ""}}]})

    async def metadata(request: Request) -> Response:
        model = find(**request.path_params)
        return JSONResponse({
            "model_spec": {"name": request.path_params["name"], "signature_name": "",
                           "version": model.version},
            "metadata": {"signature_def": {"signature_def": model.signature_defs}}})

    async def predict(request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405)
        model, headers = find(**request.path_params), request.headers
        if (encoding := headers.get("content-encoding", "identity")) != "identity":
            raise HTTPException(415, f"send plain JSON. Received: Content-Encoding: {encoding}")
        # A chunked body may be large; it counts as such before its length is known.
        is_large = "transfer-encoding" in headers or int(headers.get("content-length", 0)) > _LARGE
        async with one_large if is_large else contextlib.nullcontext():
            body = await http_server.read_body(
                request, int(config.max_body_mib * 2**20), " (--max_body_mib)")
            answer = await asyncio.to_thread(predict_json.answer, body, model, config)
        return Response(answer, media_type="application/json")

    # A reverse proxy limits requests per second.
    routes = [Route("/", page)]
    for path in ("/v1/models/{name}", "/v1/models/{name}/versions/{version}"):
        routes += [Route(f"{path}:predict", predict, methods=["GET", "POST"]),
                   Route(path, status), Route(f"{path}/metadata", metadata)]
    return http_server.server(routes, config.host, timeout_graceful_shutdown=60,
                              limit_concurrency=config.max_connections)
