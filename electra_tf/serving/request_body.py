"""Reading a request's body within limits."""

import asyncio
import dataclasses

from starlette.requests import Request

from electra_tf.serving.errors import RequestError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take."""

    max_body_bytes: int = 16 * 2**20
    """A longer body is answered with 413."""
    max_request_rows: int = 1024
    """More rows are answered with 400: they are one call, which has to fit into memory."""
    body_timeout_seconds: float = 60.0
    """A body that takes longer to arrive is answered with 408."""


async def read(request: Request, limits: Limits) -> bytes:
    """Returns the body of a request.

    A body that is too long is read to its end and thrown away: a client that is still sending
    would not see the answer. One that is far too long is not read further.

    Raises:
        RequestError: it is too long, or takes too long to arrive.
    """
    size, chunks = 0, []
    try:
        async with asyncio.timeout(limits.body_timeout_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limits.max_body_bytes:
                    chunks.append(chunk)
                elif size > 8 * limits.max_body_bytes:
                    break
    except TimeoutError as error:
        raise RequestError("the body took too long to arrive", 408) from error
    if size > limits.max_body_bytes:
        raise RequestError(f"the body is longer than {limits.max_body_bytes} bytes "
                           "(--max_body_mib)", 413)
    return b"".join(chunks)
