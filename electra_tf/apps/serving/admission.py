"""How much may wait: requests, rows and bytes over all clients together.

Whoever comes when there is no room is told at once (503, with Retry-After), so that those who are
in are answered in time. A visit gives back what it holds when it ends, however it ends.
"""

import dataclasses
from types import TracebackType

from starlette.types import ASGIApp, Receive, Scope, Send

from electra_tf.apps.serving.errors import RequestError


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdmissionLimits:
    """What may wait at the same time."""

    max_waiting_requests: int = 512
    """Read and not yet answered, those that are being computed among them."""
    max_waiting_rows: int = 8192
    """Of these requests."""
    max_buffered_bytes: int = 256 * 2**20
    """Of bodies that have arrived and answers that aren't sent yet."""


class Admission:
    """Counts what is held.

    Example:
        with admission.visit() as visit:
            visit.hold(len(chunk))
    """

    def __init__(self, limits: AdmissionLimits):
        """Starts empty."""
        self.limits = limits
        self.requests = 0
        self.rows = 0
        self.bytes = 0

    def visit(self) -> "Visit":
        """Returns what one request holds, at first nothing."""
        return Visit(self)


class Visit:
    """What one request holds, from its first byte to the last of its answer."""

    def __init__(self, admission: Admission):
        """Holds nothing yet."""
        self._all = admission
        self._requests = 0
        self._rows = 0
        self._bytes = 0

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._all.requests -= self._requests
        self._all.rows -= self._rows
        self._all.bytes -= self._bytes

    def hold(self, size: int) -> None:
        """Takes room for bytes.

        Raises:
            RequestError: there isn't enough.
        """
        limit = self._all.limits.max_buffered_bytes
        if self._bytes + size > limit:
            raise RequestError(f"the request and its answer are longer than {limit} bytes "
                               "(--max_buffered_mib); send fewer rows at a time", 413)
        if self._all.bytes + size > limit:
            raise RequestError("too many bytes are waiting (--max_buffered_mib); try again", 503)
        self._bytes += size
        self._all.bytes += size

    def wait(self) -> None:
        """Takes a place among the requests that wait.

        Raises:
            RequestError: all are taken.
        """
        if self._all.requests >= self._all.limits.max_waiting_requests:
            raise RequestError(
                "too many requests are waiting (--max_waiting_requests); try again", 503)
        self._requests += 1
        self._all.requests += 1

    def wait_with(self, rows: int) -> None:
        """Takes places for rows; a request that is alone always gets them.

        Raises:
            RequestError: there aren't enough.
        """
        if self._all.rows and self._all.rows + rows > self._all.limits.max_waiting_rows:
            raise RequestError("too many rows are waiting (--max_waiting_rows); try again", 503)
        self._rows += rows
        self._all.rows += rows


class Admitted:
    """An ASGI application whose requests have a visit each: `request.state.visit`."""

    def __init__(self, application: ASGIApp, admission: Admission):
        """Takes what answers."""
        self._application = application
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; it holds what it holds until the client has read its answer."""
        with self._admission.visit() as visit:
            scope.setdefault("state", {})["visit"] = visit
            await self._application(scope, receive, send)
