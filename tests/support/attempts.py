"""How a reader is tried with what it can't read: in one line, in time, counted.

`cases` decides how many inputs a test tries: few and always the same ones in the usual run of the
tests, many and new ones in `make fuzz`, which sets FUZZ_CASES.
"""

import collections
import os
import signal
from collections.abc import Callable
from typing import Any

import hypothesis

from electra_tf.core.errors import MAX_CHARACTERS, UserError

CASES = int(os.environ.get("FUZZ_CASES", "0"))
"""Inputs per quick reader; 0 for the usual run."""
FEW = 30
SECONDS = 10

REFUSED = object()
"""What `attempt` returns for an input that was refused."""

tally: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
"""Reader -> outcome -> cases; printed at the end of the tests."""


def cases(share: float = 1.0) -> Callable:
    """Returns hypothesis's settings for a test that gets a share of the cases of a quick one."""
    return hypothesis.settings(
        max_examples=max(4, round((CASES or FEW) * share)), derandomize=not CASES, database=None,
        deadline=None, print_blob=True, suppress_health_check=list(hypothesis.HealthCheck))


def attempt(reader: str, read: Callable[[], Any]) -> Any:
    """Returns what a function read, or `REFUSED` after an error that a person can use.

    It counts under the name of the reader. Any other exception goes on: the tests look for it.
    """
    def too_long(*_arguments: object) -> None:
        raise TimeoutError(f"a reader took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        result = read()
    except UserError as error:
        require_readable(str(error))
        tally[reader]["refused"] += 1
        return REFUSED
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    tally[reader]["accepted"] += 1
    return result


def require_readable(message: str) -> None:
    """Fails unless a message is one short line without anything that a terminal would obey."""
    assert message.isprintable(), repr(message)
    assert 0 < len(message) <= MAX_CHARACTERS, len(message)
