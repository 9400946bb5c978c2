"""Requests that wait at the same time become one call of the model.

Rows of a call are computed side by side, so one call of 32 rows takes less time than 32 calls. An
idle model answers at once; requests gather only while it is busy with an earlier one. Only
requests of the same signature are joined, and only if every input and output begins with a batch
dimension, the other dimensions of the inputs agree, and their texts are of similar length.

A request of more rows is computed in several calls, one after the other: others are answered in
between, and nothing more is computed for a client that has left.

`max_batch_size=1` turns joining and cutting off. Who waits is in waiting.py, what is done
with a batch in joining.py.
"""

import asyncio
import concurrent.futures
import functools
from collections.abc import AsyncIterator, Callable, Hashable, Sequence

import tensorflow as tf

from electra_tf.apps.serving.joining import answer_together
from electra_tf.apps.serving.saved_models import Arrays, Signature
from electra_tf.apps.serving.waiting import BatchingConfig, Queue, Waiting, sharing_key

# Turns of the event loop, some 0.1 ms: requests that are in the sockets already come along.
_TURNS_TO_ARRIVE = 4


class Batcher:
    """Answers requests in worker threads; the event loop is never kept waiting.

    Example:
        batcher = Batcher(BatchingConfig())
        pieces = [piece async for piece in batcher.answers(signature, inputs, in_pieces=True)]
    """

    def __init__(self, config: BatchingConfig, on_call: Callable[[int], None] = lambda rows: None):
        """Starts no thread before the first request.

        Args:
            config: how requests are joined.
            on_call: is told the rows of every call.
        """
        self._config = config
        self._on_call = on_call
        self._threads = concurrent.futures.ThreadPoolExecutor(
            config.parallel_calls, thread_name_prefix="predict")
        self._free_calls = asyncio.Semaphore(config.parallel_calls)
        self._running = 0
        self._queues: dict[Hashable, Queue] = {}
        self._tasks: set[asyncio.Task] = set()  # asyncio itself forgets running tasks.

    async def answers(self, signature: Signature, inputs: Arrays, *,
                      in_pieces: bool) -> AsyncIterator[Arrays]:
        """Yields the outputs of one request, computed together with those of others.

        Cancelling it takes the request out of the queue.

        Args:
            signature: what to call.
            inputs: arrays that fit its inputs.
            in_pieces: whether the answer to many rows may be several pieces, whose outputs need
                not agree in their other dimensions. Outputs of fixed width are cut anyway.

        Raises:
            tf.errors.OpError: the graph refused this request; those beside it have their answers.
        """
        rows, most = _rows(signature, inputs), self._config.max_batch_size
        if rows is None or not 1 < most < rows or not (in_pieces or signature.has_fixed_widths):
            yield await self._ask(signature, inputs, rows)
            return
        for first in range(0, rows, most):
            part = {name: array[first:first + most] for name, array in inputs.items()}
            yield await self._ask(signature, part, min(most, rows - first))

    async def _ask(self, signature: Signature, inputs: Arrays, rows: int | None) -> Arrays:
        """Returns the outputs of one call's worth of rows; None if they can't be joined."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(inputs=inputs, rows=rows or 1, arrived=loop.time(),
                           answer=loop.create_future())
        if rows is None:
            await self._free_calls.acquire()
            self._call(signature, [waiting])
            return await waiting.answer
        key = sharing_key(signature, inputs)
        if key not in self._queues:
            self._queues[key] = Queue(self._config)
            self._start(self._serve(key, signature))
        queue = self._queues[key]
        queue.add(waiting)
        try:
            return await waiting.answer
        finally:
            queue.leave(waiting)

    async def _serve(self, key: Hashable, signature: Signature) -> None:
        """Calls the model until nobody waits; those that come while it is busy are joined."""
        queue = self._queues[key]
        for _ in range(_TURNS_TO_ARRIVE):
            await asyncio.sleep(0)
        while queue.waiting:
            if self._running:
                await queue.full_or_late()
            await self._free_calls.acquire()
            if queue.waiting:
                self._call(signature, queue.take())
            else:  # All have left meanwhile.
                self._free_calls.release()
        del self._queues[key]

    def _call(self, signature: Signature, batch: Sequence[Waiting]) -> None:
        self._running += 1
        self._on_call(sum(waiting.rows for waiting in batch))
        task = self._start(self._answer(signature, batch))
        task.add_done_callback(functools.partial(self._settle, batch))

    async def _answer(
        self, signature: Signature, batch: Sequence[Waiting]
    ) -> list[Arrays | tf.errors.OpError]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, answer_together, signature, [waiting.inputs for waiting in batch],
            [waiting.rows for waiting in batch])

    def _settle(self, batch: Sequence[Waiting], task: asyncio.Task) -> None:
        """Hands out answers; an error of ours goes to everybody, so that nobody waits forever."""
        self._free_calls.release()
        self._running -= 1
        failed = None if task.cancelled() else task.exception()
        outcomes = [failed] * len(batch) if failed or task.cancelled() else task.result()
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if waiting.answer.done():
                continue
            if outcome is None:
                waiting.answer.cancel()
            elif isinstance(outcome, BaseException):
                waiting.answer.set_exception(outcome)
            else:
                waiting.answer.set_result(outcome)

    def _start(self, coroutine) -> asyncio.Task:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _rows(signature: Signature, inputs: Arrays) -> int | None:
    """Returns the rows of a request that may be joined or cut, None if it may not."""
    sizes = {array.shape[:1] for array in inputs.values()}
    return next(iter(sizes))[0] if signature.has_rows and len(sizes) == 1 else None
