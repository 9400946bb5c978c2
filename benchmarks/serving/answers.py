"""Measures turns of the serving benchmark, from strings to labels and probabilities.

A turn answers all texts of a case once, in their order, and reports the seconds of every call. Some
calls before it are not counted, because the process was stopped. Standard library only.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MAX_LENGTH = 128
"""Largest number of tokens of a text with [CLS] and [SEP]; all systems truncate to it."""
BATCHES = (1, 32)
_UNCOUNTED = {1: 5, 32: 1}
"""Batch -> number of calls before a turn."""

Answer = Callable[[list[str]], tuple[Sequence[str | bytes], Sequence[Sequence[float]]]]
"""Maps texts to their labels, and to the probabilities of all classes."""


def turn_of(texts: Mapping[str, list[str]],
            answer: Answer) -> Callable[[str, int], Mapping[str, Any]]:
    """Returns a turn over a case's texts in batches; a batch of 0 asks for the answers themselves.

    `texts` maps a case to its texts; `answer` is the system.
    """
    def turn(case: str, batch: int) -> Mapping[str, Any]:
        case_texts = texts[case]
        if not batch:
            return {"case": case, "probabilities": [row[0] for row in answer(case_texts)[1]]}
        batches = [case_texts[first:first + batch]
                   for first in range(0, len(case_texts), batch)]
        for uncounted in batches[-_UNCOUNTED[batch]:]:
            answer(uncounted)
        seconds = []
        for counted in batches:
            begin = time.perf_counter()
            answer(counted)
            seconds.append(time.perf_counter() - begin)
        return {"calls": seconds}

    return turn
