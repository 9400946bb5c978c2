"""The programs of docs/how_to/python.md run in their order, with tiny networks."""

import pathlib
import re

import numpy as np
import pytest

import electra_tf
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "how_to" / "python.md"


@pytest.mark.slow
def test_the_programs_of_the_page_run(checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    letters = "abcdefghijklmnopqrstuvwxyz"
    electra_tf.api.electra.Electra(tiny_networks.pretrained(
        Vocabulary((*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters), ".")),
        model__generator_width=1.0)).save(tmp_path / "encoder")
    code = "\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8")))
    names = {}
    exec(compile(code.replace("google/electra-small-discriminator", "encoder"), str(PAGE), "exec"),
         names)
    assert electra_tf.load_task("runs/films").results == names["model"].results
    loaded, electra = electra_tf.load("towers_hf"), names["electra"]
    np.testing.assert_array_equal(loaded.embed(names["texts"]), electra.embed(names["texts"]))
    assert names["features"].shape == (32, 32) and names["towers"].output_shape == (None, 1)
