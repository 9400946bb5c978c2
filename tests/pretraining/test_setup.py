"""What has to happen in which order before a run starts."""

import subprocess
import sys

from electra_tf.checkpoints import formats
from electra_tf.checkpoints.formats import Format
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.export import conversion
from electra_tf.pretraining import setup
from tests import tiny_networks, tiny_run
from tests.determinism.processes import ROOT

PROGRAM = """
import sys
from pathlib import Path
from tensorflow.python.eager import context
from electra_tf.pretraining import setup
from electra_tf.training import devices
from tests import tiny_run

def check(runtime):
    print("started" if context.context()._initialized else "fresh")
    raise SystemExit

devices.create_strategy = check
setup.prepare(tiny_run.config(), Path(sys.argv[1]), Path("unused"))
"""


def test_tensorflow_runs_nothing_before_threads_and_workers_are_set(records):
    """Afterwards it refuses workers, and keeps the threads that it has."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(records)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.stdout == "fresh\n", done.stderr


def test_the_generator_is_as_wide_as_the_one_it_begins_with_and_that_is_said(
        records, tmp_path, capsys):
    built = tiny_run.run_on(records)
    theirs = tiny_networks.pretrained(
        built.vocabulary, normalization=built.text.normalization,
        model__generator_width=1.0, model__generator_depth=0.5)
    conversion.write(theirs, tmp_path / "pair", Format.HUGGING_FACE)
    initial = formats.read(tmp_path / "pair")
    run = setup.prepare(tiny_run.config(), records, tmp_path / "run", initial=initial)
    assert (built.config.model.generator.hidden_size, built.config.model.generator.num_layers,
            run.config.model.generator.hidden_size, run.config.model.generator.num_layers
            ) == (16, 2, 32, 1)
    assert "model.generator_width is 1, not 0.5, model.generator_depth is 0.5, not 1: " in (
        capsys.readouterr().out)
    assert assign_parts(run.build_model().trainable_variables, initial.weights, "theirs") == []
