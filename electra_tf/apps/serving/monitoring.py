"""What Prometheus reads of the server: `/monitoring/prometheus/metrics`."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import prometheus_client
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from electra_tf.apps.serving.admission import Admission
from electra_tf.apps.serving.catalog import Catalog

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
_SECONDS = (.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)


class Metrics:
    """Counters of one server."""

    def __init__(self, catalog: Catalog, admission: Admission):
        """Counts from now on; models and queues are read when somebody asks."""
        self._registry = prometheus_client.CollectorRegistry()
        self._requests = prometheus_client.Counter(
            "serving_requests", "Requests that were answered, errors among them.",
            ("model", "version", "status"), registry=self._registry)
        self._seconds = prometheus_client.Histogram(
            "serving_request_seconds", "From a request's headers to the end of its answer.",
            ("model", "version"), buckets=_SECONDS, registry=self._registry)
        self._calls = prometheus_client.Histogram(
            "serving_call_rows", "Rows of the model's calls.", buckets=_ROWS,
            registry=self._registry)
        self._abandoned = prometheus_client.Counter(
            "serving_abandoned_requests", "Requests whose client left before the answer.",
            registry=self._registry)
        self._connections = prometheus_client.Gauge(
            "serving_connections", "Clients that are connected.", registry=self._registry)
        self._registry.register(_Now(catalog, admission))
        prometheus_client.ProcessCollector(registry=self._registry)

    def call(self, rows: int) -> None:
        """Counts a call of a model."""
        self._calls.observe(rows)

    def abandoned(self) -> None:
        """Counts a client that left."""
        self._abandoned.inc()

    def text(self, connections: int) -> bytes:
        """Returns everything in Prometheus's format."""
        self._connections.set(connections)
        return prometheus_client.generate_latest(self._registry)

    @contextlib.contextmanager
    def request(self, state: dict[str, Any]) -> Iterator[None]:
        """Counts a request; `state` says at the end what it was about."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            model, version = state.get("served", ("", ""))
            self._requests.labels(model, version, state.get("status", 499)).inc()
            self._seconds.labels(model, version).observe(time.perf_counter() - begin)


class Counted:
    """An ASGI application whose requests are counted."""

    def __init__(self, application: ASGIApp, metrics: Metrics):
        """Takes what answers."""
        self._application = application
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; whatever else uvicorn says is passed on."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        state = scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
            await send(message)

        with self._metrics.request(state):
            await self._application(scope, receive, sending)


class _Now(Collector):
    """What is there at the moment of asking."""

    def __init__(self, catalog: Catalog, admission: Admission):
        self._catalog = catalog
        self._admission = admission

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the gauges."""
        for name, what, value in (
                ("waiting_requests", "Requests that wait or are computed.",
                 self._admission.requests),
                ("waiting_rows", "Their rows.", self._admission.rows),
                ("buffered_bytes", "Bodies that have arrived and answers that aren't sent yet.",
                 self._admission.bytes)):
            yield GaugeMetricFamily(f"serving_{name}", what, value=value)
        states = GaugeMetricFamily("serving_model_state", "1 for the state that a version is in.",
                                   labels=("model", "version", "state"))
        for model in self._catalog.models.values():
            for version in list(model.known.values()):
                states.add_metric(
                    (model.source.name, str(version.number), version.state.upper()), 1)
        yield states
