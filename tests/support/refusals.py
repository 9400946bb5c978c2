"""Expects an error of one line, as users see it."""

import contextlib
from collections.abc import Iterator

import pytest

from electra_tf.core.errors import UserError


@contextlib.contextmanager
def refused(words: str) -> Iterator[pytest.ExceptionInfo]:
    """Expects a `UserError` of one line in which a regular expression is found."""
    with pytest.raises(UserError, match=words) as error:
        yield error
    assert "\n" not in str(error.value)
