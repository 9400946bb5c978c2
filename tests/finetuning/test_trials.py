"""What is kept of a trial's epochs."""

import types

import pytest
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig, FinetuningTrainingConfig
from electra_tf.finetuning import trials
from electra_tf.finetuning.finetuner import Interval
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.kind import Scored, Split
from electra_tf.tasks.task import TaskSpec

SPEC = TaskSpec(name="rte", kind=Kind.CLASSIFICATION, labels=("no", "yes"), metrics=("accuracy",))


@pytest.fixture
def run_trial(monkeypatch):
    """Runs epochs of two steps with these scores; the model's one weight is the step."""
    def run(scores, **training):
        weight, left = tf.Variable(0.0), iter(scores)

        def epochs(self):
            for epoch in range(1, 1 + len(scores)):
                weight.assign(2.0 * epoch)
                yield Interval(step=2 * epoch - 1, epoch=epoch, loss=1.0, ends_epoch=False)
                yield Interval(step=2 * epoch - 1, epoch=epoch, loss=9.0, ends_epoch=False,
                               passing=True)
                yield Interval(step=2 * epoch, epoch=epoch, loss=3.0 / epoch, ends_epoch=True)

        monkeypatch.setattr(trials, "Finetuner", lambda *arguments, seed: types.SimpleNamespace(
            num_steps=2 * len(scores), epochs=lambda: epochs(None)))
        monkeypatch.setattr(trials, "Predictor", lambda *arguments: types.SimpleNamespace(
            predict=lambda rows: rows))
        dev = {"dev": Split(rows=[], score=lambda results, threshold: Scored(
            records=[], scores={"accuracy": next(left)}))}
        config = FinetuningConfig(training=FinetuningTrainingConfig(
            num_train_epochs=len(scores), **training))
        trial = trials.run_trial(
            types.SimpleNamespace(config=config, spec=SPEC),
            types.SimpleNamespace(variables=[weight]), [], dev, metric="accuracy", seed=1)
        return trial, float(weight)
    return run


def test_the_last_epoch_is_kept_unless_the_best_one_is_asked_for(run_trial):
    scores = [0.5, 0.8, 0.8, 0.6]
    trial, weight = run_trial(scores)
    assert (trial.kept_epoch, weight, len(trial.epochs)) == (4, 8.0, 4)
    trial, weight = run_trial(scores, keep_best=True)
    assert (trial.kept_epoch, weight) == (2, 4.0)  # The first of equals.
    assert trial.scores == {"dev": {"accuracy": 0.8}}


def test_an_epochs_loss_is_the_mean_of_its_own_steps(run_trial):
    trial, _ = run_trial([0.5, 0.6])
    assert trial.losses == ((1, 1.0), (2, 3.0), (3, 1.0), (4, 1.5))  # None that is passing.
    assert [epoch.loss for epoch in trial.epochs] == [2.0, 1.25]
