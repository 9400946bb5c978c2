"""One predict request, from its body to its answer, for as long as its client is there."""

import asyncio
import concurrent.futures
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from electra_tf.apps.serving import answers, predict_request, request_body
from electra_tf.apps.serving.admission import Visit
from electra_tf.apps.serving.batching import Batcher
from electra_tf.apps.serving.predict_request import PredictRequest, RequestFormat
from electra_tf.apps.serving.request_body import Limits
from electra_tf.apps.serving.saved_models import Arrays, ServedModel

_T = TypeVar("_T")

# JSON of 16 MiB may become 400 MB of Python's objects: not of everybody's at the same time.
_THREADS = 2
_SMALL_BYTES = 8 * 1024
"""Is read and written at once: handing it to a thread takes longer."""
_NUMBER_BYTES = 24
"""Of a number on its way to JSON: Python's object."""


class Predictor:
    """Answers predict requests."""

    def __init__(self, batcher: Batcher, limits: Limits):
        """Takes what computes, and what a request may take."""
        self._batcher = batcher
        self._limits = limits
        self._threads = concurrent.futures.ThreadPoolExecutor(
            _THREADS, thread_name_prefix="json")

    async def answer(self, request: Request, model: ServedModel) -> Response:
        """Returns the answer to one request.

        Args:
            request: of which nothing has been read; `request.state.visit` is its visit.
            model: that is asked.

        Raises:
            RequestError: it can't be answered.
            tf.errors.OpError: the graph refused it.
            ClientDisconnect: the client left; nothing more is done for it.
        """
        visit = request.state.visit
        body = await request_body.read(request, self._limits, visit)
        visit.wait()
        return await _unless_gone(request, self._answer(request, model, body, visit))

    async def _answer(self, request: Request, model: ServedModel, body: bytes,
                      visit: Visit) -> Response:
        packed = request_body.is_packed(request)
        if packed:
            body = await self._apart(functools.partial(
                request_body.unpack, body, self._limits), large=True)
            visit.hold(len(body))
        asked = await self._apart(functools.partial(
            predict_request.parse, body, model, max_rows=self._limits.max_request_rows),
            large=len(body) > _SMALL_BYTES)
        visit.wait_with(asked.rows)
        pieces, size = await self._computed(asked, visit)
        return await self._apart(functools.partial(
            _rendered, pieces, asked.format, answers.takes_gzip(request)),
            large=size > _SMALL_BYTES)

    async def _computed(self, asked: PredictRequest, visit: Visit) -> tuple[list[Arrays], int]:
        pieces, size = [], 0
        async for piece in self._batcher.answers(
                asked.signature, asked.inputs, in_pieces=asked.format is RequestFormat.ROW):
            bytes_of_piece = _size(piece)
            visit.hold(bytes_of_piece)
            pieces.append(piece)
            size += bytes_of_piece
        return pieces, size

    async def _apart(self, work: Callable[[], _T], large: bool) -> _T:
        """Does large work in a thread, so that others are served meanwhile."""
        if not large:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Returns what `work` returns, or cancels it when the client leaves."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # After the body comes nothing else.
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        leaving.cancel()
        working.cancel()


def _rendered(pieces: Sequence[Arrays], form: RequestFormat, pack: bool) -> Response:
    return answers.answer(predict_request.render(pieces, form), pack)


def _size(outputs: Arrays) -> int:
    return sum(sum(map(len, array.flat)) + array.size if array.dtype == object
               else _NUMBER_BYTES * array.size for array in outputs.values())
