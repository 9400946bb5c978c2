"""TensorFlow Serving's REST API for several models and versions, as an ASGI application.

    GET  /v1/models/NAME[/versions/N]             whether it is there
    GET  /v1/models/NAME[/versions/N]/metadata    its signatures
    POST /v1/models/NAME[/versions/N]:predict     inputs in, outputs out
    GET  /monitoring/prometheus/metrics           what the server does
    GET  /                                        a page to try it out

Addresses, bodies and status codes are those of https://www.tensorflow.org/tfx/serving/api_rest;
:classify and :regress, which take tf.Example, are not offered. Every error is {"error": "..."}.
"""

import dataclasses
import re
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from electra_tf.apps.serving import answers, catalog, page
from electra_tf.apps.serving.admission import Admission, AdmissionLimits, Admitted
from electra_tf.apps.serving.batching import Batcher
from electra_tf.apps.serving.catalog import Catalog
from electra_tf.apps.serving.error_answers import HANDLERS
from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.model_versions import ModelVersions
from electra_tf.apps.serving.monitoring import CONTENT_TYPE, Counted, Metrics
from electra_tf.apps.serving.prediction import Predictor
from electra_tf.apps.serving.request_body import Limits
from electra_tf.apps.serving.waiting import BatchingConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How requests are answered."""

    batching: BatchingConfig = BatchingConfig()
    limits: Limits = Limits()
    admission: AdmissionLimits = AdmissionLimits()


class _NameConvertor(StringConvertor):
    """A part of an address up to the next slash or colon: `NAME:predict` is a name and a verb."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())


def application(models: Catalog, settings: Settings,
                connections: Callable[[], int] = lambda: 0) -> ASGIApp:
    """Returns the ASGI application.

    Args:
        models: what is served.
        settings: how.
        connections: how many clients are connected.
    """
    admission = Admission(settings.admission)
    metrics = Metrics(models, admission)
    predictor = Predictor(Batcher(settings.batching, metrics.call), settings.limits)
    api = _Api(models, predictor, lambda: metrics.text(connections()))

    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        metrics.abandoned()
        return Response(status_code=499)  # Nobody reads it.

    model_path = "/v1/models/{name:name}"
    routes = [Route("/", api.page), Route("/monitoring/prometheus/metrics", api.metrics)]
    for path in (model_path, model_path + "/versions/{version:name}"):
        routes += [Route(path, api.status), Route(f"{path}/metadata", api.metadata),
                   Route(path + ":{verb:name}", api.predict, methods=["POST"])]
    routed = Starlette(routes=routes, exception_handlers={**HANDLERS, ClientDisconnect: gone})
    routed.router.redirect_slashes = False
    return Counted(Admitted(routed, admission), metrics)


class _Api:
    """The routes."""

    def __init__(self, models: Catalog, predictor: Predictor, metrics: Callable[[], bytes]):
        self._models = models
        self._predictor = predictor
        self._metrics = metrics

    async def page(self, request: Request) -> Response:
        names = list(self._models.models)
        chosen = self._models.find(request.query_params.get("model", names[0])).source.name
        return Response(page.of(chosen, names), media_type="text/html", headers=page.HEADERS)

    async def metrics(self, _request: Request) -> Response:
        return Response(self._metrics(), headers={"Content-Type": CONTENT_TYPE})

    async def status(self, request: Request) -> Response:
        model, number = self._asked_for(request)
        known = list(model.known.values())
        if number is not None and not (known := [model.known[number]]
                                       if number in model.known else []):
            model.find(number)  # Refuses.
        return answers.answer(catalog.status(known))

    async def metadata(self, request: Request) -> Response:
        model, number = self._asked_for(request)
        served = model.find(number).model
        return answers.answer({
            "model_spec": {"name": served.name, "signature_name": "",
                           "version": str(served.version)},
            "metadata": {"signature_def": {"signature_def": served.signature_defs}}})

    async def predict(self, request: Request) -> Response:
        model, number = self._asked_for(request)
        if (verb := request.path_params["verb"]) != "predict":
            raise RequestError(f"only :predict is served here, not :{verb[:50]}")
        version = model.find(number)
        request.state.served = model.source.name, str(version.number)
        with model.using(version) as served:
            return await self._predictor.answer(request, served)

    def _asked_for(self, request: Request) -> tuple[ModelVersions, int | None]:
        model = self._models.find(request.path_params["name"])
        version = request.path_params.get("version")
        if version is None:
            return model, None
        if not re.fullmatch("[0-9]{1,18}", version):
            raise RequestError(f"Servable not found for request: version {version[:30]!r} of "
                               f"{model.source.name!r}; versions are whole numbers", 404)
        return model, int(version)
