"""Cleaning in a directory of the test."""

import functools

import pytest

from tests.data_prep.cleaning.cleaned_documents import cleaned


@pytest.fixture
def clean(tmp_path):
    return functools.partial(cleaned, tmp_path)
