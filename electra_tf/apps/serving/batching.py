"""Joins requests that wait at the same time into one call of the model.

An idle model is called at once; during a call, requests wait for others. Requests of one signature
share a call if all inputs and outputs begin with a batch dimension and the other dimensions agree.
Requests with more than 64 KiB of inputs are called alone and one after another. The parts of a
joined call keep the width to which the model padded an output [B, W].
"""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Hashable, Sequence

import numpy as np
import tensorflow as tf
from prometheus_client import Histogram

from electra_tf.apps.serving.models import Arrays, Signature, num_rows
from electra_tf.apps.serving.settings import ServerConfig

LARGE = 64 * 1024  # Bytes of inputs above which a request does not share a call.
_CALL_ROWS = Histogram("serving_call_rows", "Rows per model call.",
                      buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024))


class _Batch:
    """Requests of the same call; `task` returns the outputs or the error of every request."""

    def __init__(self):
        self.requests: list[Arrays] = []
        self.rows = 0
        self.full = asyncio.Event()
        self.task: asyncio.Task | None = None


class Batcher:
    """A queue of requests, with threads that call the models and start with the first request."""

    def __init__(self, config: ServerConfig):
        self._config = config
        self._threads = concurrent.futures.ThreadPoolExecutor(config.parallel_calls, "predict")
        self._free_calls = asyncio.Semaphore(config.parallel_calls)
        self._large_call = asyncio.Semaphore(1)
        self._running = 0
        self._open: dict[Hashable, _Batch] = {}

    async def answer(self, signature: Signature, inputs: Arrays) -> Arrays:
        """Returns the outputs of one request; `tf.errors.OpError` if the graph refuses it."""
        rows, max_rows = num_rows(inputs), self._config.max_batch_size
        key = None  # The request does not share a call.
        if (signature.has_rows and len({len(array) for array in inputs.values()}) == 1
                and not _is_large(inputs)):
            key = id(signature), *((name, array.shape[1:]) for name, array in sorted(
                inputs.items()))
        batch = self._open.get(key)
        if batch is None or batch.rows + rows > max_rows:
            if batch is not None:
                batch.full.set()
            batch = self._open[key] = _Batch()
            batch.task = asyncio.create_task(self._run(signature, key, batch))
        index = len(batch.requests)
        batch.requests.append(inputs)
        batch.rows += rows
        if key is None or batch.rows >= max_rows:
            del self._open[key]
            batch.full.set()
        outcome = (await batch.task)[index]
        if isinstance(outcome, tf.errors.OpError):
            raise outcome
        return outcome

    async def _run(self, signature: Signature, key: Hashable,
                   batch: _Batch) -> list[Arrays | tf.errors.OpError]:
        if self._running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(batch.full.wait(), self._config.batch_timeout_ms / 1000)
        large = self._large_call if _is_large(batch.requests[0]) else contextlib.nullcontext()
        async with large, self._free_calls:  # While the batch waits here, other requests join it.
            if self._open.get(key) is batch:
                del self._open[key]
            _CALL_ROWS.observe(batch.rows)
            self._running += 1
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, _answer_batch, signature, batch.requests)
            finally:
                self._running -= 1


def _is_large(inputs: Arrays) -> bool:
    return sum(sum(map(len, array.flat)) if array.dtype == object else array.nbytes
               for array in inputs.values()) > LARGE


def _answer_batch(signature: Signature,
                  requests: Sequence[Arrays]) -> list[Arrays | tf.errors.OpError]:
    """Returns the outputs or the error of every request; requests of a failed call run alone."""
    inputs, rows = requests[0], list(map(num_rows, requests))
    if len(requests) > 1:
        inputs = {name: np.concatenate([request[name] for request in requests]) for name in inputs}
    try:
        outputs = signature(inputs)
    except tf.errors.OpError as error:
        outputs = error
    if len(requests) == 1:
        return [outputs]
    if isinstance(outputs, tf.errors.OpError) or any(
            len(array) != sum(rows) for array in outputs.values()):
        return [_answer_batch(signature, [request])[0] for request in requests]
    parts = [np.split(array, np.cumsum(rows)[:-1]) for array in outputs.values()]
    return [dict(zip(outputs, part, strict=True)) for part in zip(*parts, strict=True)]
