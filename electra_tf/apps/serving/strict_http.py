"""HTTP/1.1 with bounds: h11 that also refuses long addresses and headers, and errors as bytes."""

import dataclasses
import http
import json

import h11

_MAX_LENGTH_DIGITS = 18  # Of a Content-Length.


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """What one connection may take, and how many there may be."""

    max_connections: int = 1024
    """One more is answered with 503 and closed."""
    header_seconds: float = 10.0
    """From the first byte of a request, or from connecting, to the end of its headers: 408."""
    idle_seconds: float = 5.0
    """Between two requests of a connection."""
    stalled_seconds: float = 30.0
    """An answer of which nothing is read for so long is given up."""
    linger_seconds: float = 2.0
    """After the last answer, for a client that still sends or reads."""
    max_target_bytes: int = 8 * 1024
    """A longer address is answered with 414."""
    max_header_bytes: int = 16 * 1024
    """More headers are answered with 431."""


class StrictConnection(h11.Connection):
    """Refuses requests that h11 takes: long addresses, and more headers than are allowed."""

    def __init__(self, limits: ConnectionLimits):
        """Takes the sizes from the limits."""
        super().__init__(h11.SERVER, limits.max_target_bytes + limits.max_header_bytes)
        self._limits = limits
        self.refusal: h11.RemoteProtocolError | None = None
        """The last error, whose message and `error_status_hint` the client is told."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Returns what h11 returns.

        Raises:
            h11.RemoteProtocolError: it is in `refusal`, too.
        """
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint
            if status == 431 and b"\n" not in self.trailing_data[0]:
                status = 414  # Not even the first line has come to its end.
            self.refusal = self._refused(status, str(error))
        else:
            self.refusal = self._checked(event) if isinstance(event, h11.Request) else None
        if self.refusal is not None:
            raise self.refusal
        return event

    def _checked(self, request: h11.Request) -> h11.RemoteProtocolError | None:
        lengths = [value for name, value in request.headers if name == b"content-length"]
        if request.http_version not in (b"1.0", b"1.1"):
            return self._refused(505, "only HTTP/1.1 is spoken here")
        if len(request.target) > self._limits.max_target_bytes:
            return self._refused(414, "")
        if sum(len(name) + len(value) for name, value in request.headers) > (
                self._limits.max_header_bytes):
            return self._refused(431, "")
        if lengths and len(lengths[0]) > _MAX_LENGTH_DIGITS:
            return self._refused(413, "the body is too long")
        return None

    def _refused(self, status: int, message: str) -> h11.RemoteProtocolError:
        messages = {
            400: f"the request isn't HTTP/1.1: {message}",
            414: f"the address is longer than {self._limits.max_target_bytes} bytes",
            431: f"the headers are longer than {self._limits.max_header_bytes} bytes"}
        return h11.RemoteProtocolError(messages.get(status, message), status)


def error_answer(status: int, message: str) -> bytes:
    """Returns an answer after which the connection is closed.

    >>> error_answer(408, "too slow").splitlines()[0]
    b'HTTP/1.1 408 Request Timeout'
    """
    body = (json.dumps({"error": message}) + "\n").encode("ascii")
    retry = "Retry-After: 1\r\n" if status == http.HTTPStatus.SERVICE_UNAVAILABLE else ""
    return (f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{retry}"
            "Connection: close\r\n\r\n").encode("ascii") + body
