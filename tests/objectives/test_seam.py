"""A new objective is one file and its entry: this one, which nothing else knows of.

It has no generator: tokens are replaced by others at random, and a discriminator finds them.
"""

import contextlib
import io

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import read_identity
from electra_tf.checkpoints.weights import ENCODER
from electra_tf.config.objectives import OBJECTIVES, Metric, ObjectiveConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.settings import setting
from electra_tf.export import servable
from electra_tf.formats import pretrained
from electra_tf.modeling import specs
from electra_tf.objectives.frozen_generator import DiscriminatorModel
from electra_tf.objectives.objective import LossOutput
from electra_tf.objectives.pretraining import DisplayedText, PretrainingObjective
from electra_tf.pretraining import evaluation, loop
from electra_tf.reporting.metrics_log import read_metrics
from tests.support import tiny_run


class RandomWordsConfig(ObjectiveConfig):
    """Words drawn at random."""

    name: str = "random_words"
    implementation = f"{__name__}:RandomWords"
    metrics = {
        "random_loss": Metric(unit="nats per token", panel="random words (nats / token)"),
        "random_called": Metric(unit="of all tokens")}
    random_loss_weight: float = setting(3.0, "Factor of the loss.")


class RandomWords(PretrainingObjective):
    model_class = DiscriminatorModel
    losses = ("random_loss",)

    def prepare_inputs(self, batch, rng):
        return batch, {"random_loss": tf.reduce_sum(tf.cast(batch.padding_mask, tf.float32))}

    def compute(self, model, inputs, rng, *, training):
        shape = inputs.ids.shape
        drawn = rng.uniform("words", *shape) * self.config.model.vocab_size
        chosen = inputs.padding_mask & (rng.uniform("places", *shape) < 0.2)
        ids = tf.where(chosen, tf.cast(drawn, tf.int32), inputs.ids)
        replaced = ids != inputs.ids
        logits = model.discriminator(ids, inputs.segment_ids, inputs.padding_mask,
                                     rng if training else None)  # For dropout.
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(replaced, tf.float32), logits)
        return LossOutput(
            {"random_loss": tf.reduce_sum(losses * tf.cast(inputs.padding_mask, tf.float32))}, {},
            {"written": ids, "logits": logits})

    def scores(self, per_example, means):
        logits = per_example["logits"][per_example["padding_mask"]]
        return {"random_called": float(np.mean(logits > 0))}

    def detection_logits(self, model, batch):
        return model.discriminator(batch.ids, batch.segment_ids, batch.padding_mask)

    def network_specs(self):
        return (specs.discriminator(self.config.model.discriminator),)

    def displayed_text(self, per_example):
        return DisplayedText(per_example["written"], 1 / (1 + np.exp(-per_example["logits"])))


@pytest.fixture(autouse=True, scope="module")
def registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OBJECTIVES, "random_words", RandomWordsConfig())
        yield


@pytest.fixture(scope="module")
def trained(registered, records, tmp_path_factory):
    """Returns the directory of a whole run, the metrics of its curves and what it printed."""
    directory, drawn = tmp_path_factory.mktemp("whole") / "run", {}
    with (pytest.MonkeyPatch.context() as patch,
          contextlib.redirect_stdout(io.StringIO()) as printed):
        patch.setattr(loop, "draw_curves", lambda runs, path: drawn.update(runs))
        loop.train(run_on(records, directory, runtime__eval_every_steps=3))
    (metrics,) = drawn.values()
    return directory, metrics, printed.getvalue()


def run_on(records, directory, **changes):
    return tiny_run.run_on(
        records, storage.path(directory), objective__name="random_words",
        model__num_layers=1, runtime__save_checkpoints_steps=2,
        runtime__eval_steps=1, training__num_train_steps=6, runtime__log_every_steps=1, **changes)


def test_it_trains_evaluates_draws_and_shows_samples(records, trained, capsys):
    directory, drawn, printed = trained
    metrics = read_metrics(storage.path(directory) / run_directory.METRICS_FILE)
    losses = [record["random_loss"] for record in metrics if record["kind"] == "train"]
    assert len(losses) == 6 and np.isfinite(losses).all()
    scores = [record for record in metrics if record["kind"] == "eval"][-1]
    assert {"random_loss", "random_called", "unigram_auc", "bigram_auc"} <= scores.keys()
    assert "random_called" in printed and "of all tokens" in printed
    assert "  random 0." in printed  # The loss on the line of progress.
    assert drawn == metrics
    evaluation.show_samples(run_on(records, directory))
    assert "detected" in capsys.readouterr().out


def test_its_identity_holds_its_settings_and_no_others(records, tmp_path):
    run = run_on(records, tmp_path, objective__random_loss_weight=2.0)
    run_directory.open_run_dir(run.model_dir, run.identity)
    saved = read_identity(run.model_dir)
    assert saved["objective.random_loss_weight"] == 2.0
    assert not {"objective.generator_loss_weight",
                "objective.discriminator_loss_weight"} & saved.keys()
    assert override(PretrainingConfig(), run_directory.settings_of(saved)).objective == (
        run.config.objective)


def test_its_encoder_can_be_read_and_its_discriminator_served(trained):
    networks = pretrained.read(storage.path(trained[0]))
    assert any(name.startswith(ENCODER) for name in networks.weights)
    detector = servable.build(networks)
    assert detector.encoder.config == networks.config.discriminator
