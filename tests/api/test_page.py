"""docs/reference/python.md has every public name, and its examples run."""

import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import electra_tf
from electra_tf.api import electra, encoder, runs, tokenizer
from electra_tf.tasks.task import Kind
from electra_tf.training import strategies

MODULES = (electra, encoder, runs, tokenizer)
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "python.md"
QUICK = {'pretraining_config("small"': 'pretraining_config("tiny"', "10_000": "2"}
"""Text of the examples -> what makes them short."""
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


def test_the_page_has_every_public_name():
    names = re.findall(r"(?m)^::: electra_tf\.(\w+)$", PAGE.read_text(encoding="utf-8"))
    assert sorted(names) == sorted(electra_tf.__all__)


def test_every_public_name_and_method_has_a_docstring():
    values = {name: getattr(electra_tf, name) for name in electra_tf.__all__}
    methods = {f"{name}.{member}": value for name, kind in values.items() if inspect.isclass(kind)
               for member, value in vars(kind).items() if not member.startswith("_")
               and (callable(value) or isinstance(value, property))}
    assert "Electra.embed" in methods
    assert [name for name, value in (values | methods).items() if not inspect.getdoc(value)] == []


@pytest.mark.slow
def test_the_examples_of_the_page_run(folder, monkeypatch):
    monkeypatch.setattr(strategies, "MAX_PARTS", 1)  # Every part of a batch is traced.
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 3
    code = "\n".join(blocks)
    for before, after in QUICK.items():
        assert before in code
        code = code.replace(before, after)
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    assert names["films"].results.best.scores["dev"]
    assert names["scores"]["step"] == 2 and 0 <= names["scores"]["discriminator_auc"] <= 1


def test_the_examples_of_docstrings_run(folder, electra):
    import tensorflow as tf
    import tf_keras

    names = {"electra": electra, "electra_tf": electra_tf, "tf": tf, "tf_keras": tf_keras,
             "classifier": electra_tf.load_task("runs/sst2")}
    for module in MODULES:
        done = doctest.testmod(module, extraglobs=names)
        assert done.attempted and not done.failed


def test_importing_is_lazy_and_silent_and_leaves_devices_to_the_user():
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True,
                          check=True, env={"PATH": "", "HOME": "/nonexistent",
                                           "PYTHONPATH": str(PAGE.parents[2])})
    assert done.stderr == ""
    assert {*done.stdout.split()} == {*electra_tf.__all__, "__version__"}
