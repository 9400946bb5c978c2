"""Tests of one file share networks; layers made in a graph invalidate those of earlier files."""

import pytest

from tests.support import served_models


@pytest.fixture(scope="module", autouse=True)
def own_checkpoint():
    served_models.example.cache_clear()
