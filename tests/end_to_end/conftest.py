"""A pre-training run and an encoder of tiny networks; tests that change them work on copies."""

import pytest

from electra_tf.finetuning import outputs
from electra_tf.pretraining import loop
from tests.end_to_end import commands
from tests.support import tiny_encoder


@pytest.fixture(autouse=True)
def training_only(request, monkeypatch):
    """Leaves evaluation and curves, half of a tiny run's time, to slow tests and new processes."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(loop, "Evaluator", lambda run, model: None)
        monkeypatch.setattr(loop, "draw_curves", lambda runs, path: None)
        monkeypatch.setattr(outputs, "draw_learning_curves", lambda results, path: None)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, records):
    """A run of four steps with checkpoints 2 and 4, in a directory with an odd name."""
    model_dir = tmp_path_factory.mktemp("finished") / "{run} 1"
    commands.train(records, model_dir)
    return model_dir


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("encoder")
    tiny_encoder.write(directory)
    return directory
