"""Examples in docstrings run and print what they say."""

import doctest
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("electra_tf", "data_prep") for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8") and "api" not in path.parts]
"""`tests/api` runs the examples of `electra_tf.api`, which use networks."""


def test_there_are_examples():
    assert "electra_tf.reporting.progress" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
