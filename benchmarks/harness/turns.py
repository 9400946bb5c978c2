"""Who measures whom in which order: systems in turns, so that a slow minute meets all of them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from benchmarks.harness.process import WorkerFailed

Item = TypeVar("Item")


class Asked(Protocol):
    """A worker, as far as turns need it."""

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the reply, or raises `WorkerFailed`."""
        ...

    def close(self) -> None:
        """Ends it."""
        ...


class Measured(Protocol):
    """What is known of one system."""

    failure: str
    """Why it stopped, on one line; empty if it didn't."""


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """Returns the items from the `by`-th on, then those before it."""
    start = by % len(items) if items else 0
    return [*items[start:], *items[:start]]


@contextlib.contextmanager
def failing(measured: Measured, worker: Asked,
            say: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Notes why a worker failed, ends it and goes on.

    Args:
        measured: gets the reason.
        worker: that is asked inside.
        say: is told the reason.
    """
    try:
        yield
    except WorkerFailed as error:
        worker.close()
        measured.failure = str(error)
        say(measured.failure)
