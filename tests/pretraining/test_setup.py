"""The order of a run's preparation, and the shape that initial networks give it."""

import subprocess
import sys

import pytest

from electra_tf.checkpoints import formats
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.overrides import override
from electra_tf.export import conversion
from electra_tf.export.conversion import Format
from electra_tf.platform.errors import UserError
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


def test_a_generator_of_another_size_begins_a_run_of_its_shape_alone(records, tmp_path):
    built = tiny_run.run_on(records)
    theirs = tiny_networks.pretrained(
        built.vocabulary, normalization=built.text.normalization,
        model__generator_width=1.0, model__generator_depth=0.5)
    conversion.write(theirs, tmp_path / "pair", Format.HUGGING_FACE)
    initial = formats.read(tmp_path / "pair")
    with pytest.raises(UserError, match="generator_width is 1.0 there, 0.5 here; .*_depth is 0.5"):
        setup.prepare(tiny_run.config(), records, tmp_path / "run", initial=initial)
    config = override(tiny_run.config(), setup.shape_of(initial))
    run = setup.prepare(config, records, tmp_path / "run", initial=initial)
    generator = run.config.model.generator
    assert (generator.hidden_size, generator.num_layers) == (32, 1)
    assert assign_parts(run.build_model().trainable_variables, initial.weights, "theirs") == []
