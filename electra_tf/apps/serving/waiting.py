"""Requests that wait for a call of the model, and which of them may share one."""

import asyncio
import collections
import dataclasses
from collections.abc import Hashable

from electra_tf.apps.serving.saved_models import Arrays, Signature


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchingConfig:
    """How long and how far requests are joined."""

    max_batch_size: int = 32
    """Rows of a joined call; a request that has more is cut into several calls."""
    batch_timeout_ms: float = 2.0
    """While another call runs, a request waits at most so long for others to join it, and then for
    one of the calls to be free."""
    parallel_calls: int = 2
    """Calls of the model at the same time."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Waiting:
    """A request that has no answer yet."""

    inputs: Arrays
    rows: int
    arrived: float
    answer: asyncio.Future


class Queue:
    """Requests that may be joined, oldest first."""

    def __init__(self, config: BatchingConfig):
        """Starts empty."""
        self.waiting: collections.deque[Waiting] = collections.deque()
        self._config = config
        self._full = asyncio.Event()
        self._rows = 0

    def add(self, waiting: Waiting) -> None:
        """Takes a request in."""
        self.waiting.append(waiting)
        self._rows += waiting.rows
        self._full_or_not()

    def leave(self, waiting: Waiting) -> None:
        """Forgets a request, if it hasn't been taken."""
        if waiting in self.waiting:
            self.waiting.remove(waiting)
            self._rows -= waiting.rows
            self._full_or_not()

    async def full_or_late(self) -> None:
        """Returns when a call is full or the oldest request has waited long enough."""
        deadline = self.waiting[0].arrived + self._config.batch_timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                await self._full.wait()
        except TimeoutError:
            pass  # Then the call isn't full.

    def take(self) -> list[Waiting]:
        """Removes and returns the requests of the next call: one, or more that fit."""
        taken = [self.waiting.popleft()]
        room = self._config.max_batch_size - taken[0].rows
        while self.waiting and self.waiting[0].rows <= room:
            room -= self.waiting[0].rows
            taken.append(self.waiting.popleft())
        self._rows -= sum(each.rows for each in taken)
        self._full_or_not()
        return taken

    def _full_or_not(self) -> None:
        if self._rows >= self._config.max_batch_size:
            self._full.set()
        else:
            self._full.clear()


def sharing_key(signature: Signature, inputs: Arrays) -> Hashable:
    """Returns what is equal for requests that may be joined; a queue keeps its signature alive."""
    shapes = tuple((name, array.shape[1:]) for name, array in sorted(inputs.items()))
    return id(signature), shapes, _length_class(inputs)


def _length_class(inputs: Arrays) -> int:
    """0 for texts below 4 KiB, then one more for every factor of four.

    A sentence must neither wait for a book nor be padded to its length.
    """
    longest = max((len(text) for array in inputs.values() if array.dtype == object
                   for text in array.flat), default=0)
    return max(0, (longest.bit_length() - 11) // 2)
