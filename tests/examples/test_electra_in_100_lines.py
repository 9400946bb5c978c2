"""The example trains on some of the embedded text, and stays short enough to copy."""

import pathlib
import re

import pytest

from data_prep.sources import embedded
from examples import electra_in_100_lines as example


@pytest.mark.slow
def test_the_example_detects_replaced_tokens_after_some_steps(monkeypatch, capsys):
    documents = embedded.documents()[:80]
    monkeypatch.setattr(embedded, "documents", lambda: documents)
    monkeypatch.setattr(example, "PRINT_EVERY", 10)
    assert example.train(steps=20) > 0.6
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"\d\.\d+", "_", line) for line in lines] == [
        f"step {step}  generator _  discriminator _  AUC _" for step in (10, 20)]


def test_the_example_has_at_most_100_lines():
    assert len(pathlib.Path(example.__file__).read_text("utf-8").splitlines()) <= 100
