"""Answers as they are sent: JSON, packed if the client takes it, piece by piece."""

import http
import json
import re
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_PIECE_BYTES = 64 * 1024
_WORTH_PACKING = 1024
_MOST_SHOWN = 500  # Characters of an error.


class JsonAnswer(Response):
    """A JSON answer that waits for its client: what isn't read yet stays with the request."""

    media_type = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        await send({"type": "http.response.start", "status": self.status_code,
                    "headers": self.raw_headers})
        whole = memoryview(self.body)
        for first in range(0, max(1, len(whole)), _PIECE_BYTES):
            end = first + _PIECE_BYTES
            await send({"type": "http.response.body", "body": bytes(whole[first:end]),
                        "more_body": end < len(whole)})


def answer(content: dict[str, Any], pack: bool = False) -> JsonAnswer:
    """Returns an answer with status 200.

    Args:
        content: NaN and infinities are written as such, as TensorFlow Serving does.
        pack: whether the client takes gzip.
    """
    body = (json.dumps(content, ensure_ascii=False) + "\n").encode("utf-8")
    headers = {"Vary": "Accept-Encoding"}
    if pack and len(body) >= _WORTH_PACKING:
        packer = zlib.compressobj(level=1, wbits=31)
        body = packer.compress(body) + packer.flush()
        headers["Content-Encoding"] = "gzip"
    return JsonAnswer(body, headers=headers)


def error(message: str, status: int, headers: dict[str, str] | None = None) -> JsonAnswer:
    """Returns an error: one line, whatever it quotes."""
    shown = " ".join("".join(
        each if each.isprintable() else " " for each in message[:4 * _MOST_SHOWN]).split())
    if len(shown) > _MOST_SHOWN:
        shown = shown[:_MOST_SHOWN] + " ..."
    if status in (http.HTTPStatus.SERVICE_UNAVAILABLE, http.HTTPStatus.TOO_MANY_REQUESTS):
        headers = {**(headers or {}), "Retry-After": "1"}
    body = json.dumps({"error": shown}, ensure_ascii=False) + "\n"
    return JsonAnswer(body.encode("utf-8"), status, headers)


def takes_gzip(request: Request) -> bool:
    """Whether the client says that it unpacks gzip.

    >>> takes_gzip(Request({"type": "http", "headers": [(b"accept-encoding", b"br, gzip;q=0.5")]}))
    True
    >>> takes_gzip(Request({"type": "http", "headers": [(b"accept-encoding", b"gzip;q=0")]}))
    False
    """
    accepted = request.headers.get("accept-encoding", "").lower()
    return any(re.fullmatch(r"\s*(x-)?gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?", each)
               for each in accepted.split(","))
