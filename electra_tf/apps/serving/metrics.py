"""Prometheus metrics of the process, and the limit on waiting work that two of them show."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

from prometheus_client import Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from electra_tf.apps.serving.errors import RequestError

REQUESTS = Counter("serving_requests", "Requests, including errors; 499: the client left.",
                   ("model", "version", "status"))
SECONDS = Histogram(
    "serving_request_seconds", "From a request's headers to the end of its answer.",
    ("model", "version"), buckets=(.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60))
CALL_ROWS = Histogram("serving_call_rows", "Rows per model call.",
                      buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024))
WAITING_ROWS = Gauge("serving_waiting_rows", "Rows of unanswered requests.")
BUFFERED_BYTES = Gauge("serving_buffered_bytes", "Size of the bodies of unanswered requests.")


def counted(application: ASGIApp) -> ASGIApp:
    """Returns an application that counts requests; `state["served"]` is (model, version)."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begin, status, state = time.perf_counter(), 499, scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await application(scope, receive, sending)
        finally:
            served = state.get("served", ("", ""))
            REQUESTS.labels(*served, status).inc()
            SECONDS.labels(*served).observe(time.perf_counter() - begin)

    return answer


@dataclasses.dataclass
class Limit:
    """An amount of waiting work, in rows or bytes, that has an upper limit."""

    most: int
    flag: str
    gauge: Gauge
    amount: int = 0

    @contextlib.contextmanager
    def taken(self, amount: int) -> Iterator[None]:
        """Adds an amount until the context ends, or raises a RequestError (503).

        A request that waits alone is always accepted.
        """
        if self.amount and self.amount + amount > self.most:
            raise RequestError(f"too many requests are waiting ({self.flag}); retry later", 503)
        self.amount += amount
        self.gauge.inc(amount)
        try:
            yield
        finally:
            self.amount -= amount
            self.gauge.dec(amount)
