"""The order of a run's preparation."""

import pytest

from tests.support import python_process

PROGRAM = """
import sys
from pathlib import Path
from tensorflow.python.eager import context
from electra_tf.pretraining.run import prepare_run
from electra_tf.training import strategies
from tests.support import tiny_run

def check(runtime):
    print("started" if context.context()._initialized else "fresh")
    raise SystemExit

strategies.create_strategy = check
prepare_run(tiny_run.config(), Path(sys.argv[1]), Path("unused"))
"""


@pytest.mark.slow
def test_tensorflow_runs_nothing_before_threads_and_workers_are_set(records):
    """Afterwards it refuses workers, and keeps the threads that it has."""
    assert python_process.run("-c", PROGRAM, records).stdout == "fresh\n"
