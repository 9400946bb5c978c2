"""Tests what the command reads from a run's directory, with directories written by hand."""

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import STEPS
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.pretraining import command

FACTS = {"dataset": "", "initial": None, "vocabulary": "", "lower_case": True,
         "strip_accents": True}


def test_steps_are_those_of_both_stages_also_if_the_second_has_one(tmp_path):
    run = storage.path(tmp_path)
    for directory, objective, steps in ((run / "generator", "mlm", 2), (run, "two_stage", 1)):
        config = override(PretrainingConfig(), {"objective.name": objective, STEPS: steps})
        run_directory.open_run_dir(directory, run_directory.identity(config, FACTS))
    assert command.all_settings(run)[STEPS] == 3
