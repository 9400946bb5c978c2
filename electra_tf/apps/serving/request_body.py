"""Reading a request's body within limits of size and of time."""

import asyncio
import dataclasses
import zlib
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request

from electra_tf.apps.serving.admission import Visit
from electra_tf.apps.serving.errors import RequestError

_ENCODINGS = ("", "identity", "gzip", "x-gzip")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take."""

    max_body_bytes: int = 16 * 2**20
    """A longer body is answered with 413, whether it is longer as sent or when unpacked."""
    max_request_rows: int = 1024
    """More rows are answered with 400."""
    body_timeout_seconds: float = 60.0
    """A body that takes longer to arrive is answered with 408."""
    silence_seconds: float = 10.0
    """A body of which nothing arrives for so long is answered with 408."""


async def read(request: Request, limits: Limits, visit: Visit) -> bytes:
    """Returns the body of a request as it was sent.

    A body that is too long is read to its end and thrown away: a client that is still sending
    would not see the answer. One that is far too long is not read further.

    Args:
        request: of which nothing has been read.
        limits: of its size and time.
        visit: holds what has arrived.

    Raises:
        RequestError: there is none, it is packed in another way than gzip's, it is too long, or
            takes too long to arrive.
        ClientDisconnect: the client left.
    """
    size, chunks = _announced(request, limits), []
    if size > 8 * limits.max_body_bytes:
        raise _too_long(limits)
    size = 0
    async for chunk in _arriving(request, limits):
        size += len(chunk)
        if size <= limits.max_body_bytes:
            visit.hold(len(chunk))
            chunks.append(chunk)
        elif size > 8 * limits.max_body_bytes:
            break
    if size > limits.max_body_bytes:
        raise _too_long(limits)
    return b"".join(chunks)


def is_packed(request: Request) -> bool:
    """Whether the body has to be unpacked."""
    return _encoding(request).endswith("gzip")


def unpack(body: bytes, limits: Limits) -> bytes:
    """Returns what a gzip body holds, never more than is allowed.

    Raises:
        RequestError: it isn't gzip, is cut, or holds too much.
    """
    stream = zlib.decompressobj(wbits=31)
    try:
        unpacked = stream.decompress(body, limits.max_body_bytes + 1)
    except zlib.error as error:
        raise RequestError(f"the body isn't gzip: {error}") from error
    if len(unpacked) > limits.max_body_bytes:
        raise RequestError(f"the unpacked body is longer than {limits.max_body_bytes} bytes "
                           "(--max_body_mib)", 413)
    if not stream.eof or stream.unused_data:
        raise RequestError("the body isn't gzip: it is cut, or goes on after its end")
    return unpacked


def _announced(request: Request, limits: Limits) -> int:
    """Returns what the headers say of the size, 0 for a body in chunks."""
    if _encoding(request) not in _ENCODINGS:
        raise RequestError("bodies may be packed with gzip alone. Received: "
                           f"Content-Encoding {_encoding(request)[:50]!r}", 415)
    if "content-length" in request.headers:
        return int(request.headers["content-length"])  # Digits: the parser has seen to that.
    if "transfer-encoding" not in request.headers:
        raise RequestError("a body is needed, with its Content-Length", 411)
    return 0


def _encoding(request: Request) -> str:
    return request.headers.get("content-encoding", "").strip().lower()


async def _arriving(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    end = loop.time() + limits.body_timeout_seconds
    while True:
        try:
            async with asyncio.timeout_at(min(end, loop.time() + limits.silence_seconds)):
                message = await request.receive()
        except TimeoutError as error:
            raise RequestError("the body took too long to arrive", 408) from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message["body"]
        if not message["more_body"]:
            return


def _too_long(limits: Limits) -> RequestError:
    return RequestError(f"the body is longer than {limits.max_body_bytes} bytes "
                        "(--max_body_mib)", 413)
