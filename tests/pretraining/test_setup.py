"""The order of a run's preparation."""

import subprocess
import sys

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
