"""Replacements of no network, and of another run's generator, which a first stage may make."""

import dataclasses
import math
import shutil
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.data.example import Batch
from electra_tf.formats import pretrained
from electra_tf.formats.parts import extract, infer_generator
from electra_tf.formats.pretrained import Checkpoint, Format
from electra_tf.objectives import frozen_generator
from electra_tf.objectives.frozen_generator import replacement_logits
from electra_tf.objectives.pretraining import TrainedGenerator
from electra_tf.pretraining import loop
from electra_tf.text.vocabulary import Vocabulary
from tests.support import (
    golden_files,
    named_arrays,
    tiny_encoder,
    tiny_networks,
    tiny_records,
    tiny_run,
)
from tests.support.golden_batch import CONTEXT, RNG, masked_batch
from tests.support.refusals import refused

SHORT = {"model__num_layers": 1, "runtime__eval_steps": 1,
         "runtime__save_checkpoints_steps": 1}


def test_replacements_are_equally_likely_or_as_likely_as_frequent():
    """Uniform draws include special tokens, as in the reference."""
    uniform = replacement_logits("uniform", CONTEXT)
    np.testing.assert_array_equal(uniform[:500], np.zeros(500))
    logits = replacement_logits("unigram", CONTEXT).astype(np.float64)
    np.testing.assert_allclose(np.exp(logits[:500]), np.arange(500) / (499 * 500 / 2), rtol=1e-5)
    assert logits[0] < -1e8 and (logits[500:] < -1e8).all() and (uniform[500:] < -1e8).all()
    assert uniform.shape == logits.shape == (512,)


@pytest.mark.parametrize(("replacements", "mean"), [
    ("uniform", 499 / 2), ("unigram", 999 / 3)])
def test_selected_tokens_are_replaced_by_such_draws_and_others_stay(replacements, mean):
    config = override(PretrainingConfig(), {
        "objective.name": "fixed_generator", "objective.replacements": replacements})
    objective = frozen_generator.FixedGeneratorObjective(config, CONTEXT)
    model = frozen_generator.DiscriminatorModel(golden_files.model_config("electra"), seed=0)
    ids = tf.fill([64, 60], 7)
    batch = Batch(ids, ids > 0, tf.zeros_like(ids))
    inputs, denominators = objective.prepare_inputs(batch, RNG)
    assert denominators.keys() == objective.loss_weights.keys() == {"discriminator_loss"}
    per_example = objective.compute(model, inputs, RNG, training=False).per_example
    corrupted, replaced = per_example["corrupted_ids"].numpy(), per_example["replaced"].numpy()
    assert (corrupted[~replaced] == 7).all()
    drawn = corrupted[replaced]
    assert 64 * 8 < drawn.size <= 64 * 9
    assert drawn.mean() == pytest.approx(mean, abs=4 * 145 / math.sqrt(drawn.size))


@pytest.fixture(scope="module")
def electra_run(tmp_path_factory):
    """Returns the directory of an ELECTRA run."""
    path = storage.path(tmp_path_factory.mktemp("given"))
    tiny_encoder.write(path, model__num_layers=1)
    return path


def run_with(records, generator, **changes):
    return tiny_run.run_on(records, objective__name="frozen_generator",
                           objective__generator=str(generator), **SHORT | changes)


def frozen(variant, weights):
    """Returns the generator of a run of these weights, as another run takes it."""
    config = golden_files.model_config(variant)
    trained = TrainedGenerator(*extract(Checkpoint(
        source="runs/one", text=None, weights=weights,
        config=infer_generator(config, weights, "runs/one")), "generator"))
    return frozen_generator.FrozenGeneratorObjective(
        PretrainingConfig(), dataclasses.replace(CONTEXT, generator=trained)).build_model(
            config, seed=1, policy="float32").generator


@pytest.mark.parametrize("variant", golden_files.VARIANTS)
def test_it_computes_what_the_generator_that_it_was_does(variant):
    """However that was tied; the reference's logits are known."""
    inputs, _ = masked_batch()
    logits = frozen(variant, golden_files.load(f"{variant}_weights"))(
        inputs.ids, inputs.original.segment_ids, inputs.original.padding_mask,
        inputs.masked.positions)
    golden = golden_files.load(f"{variant}_outputs")["mlm_logits"].reshape(-1, 500)
    np.testing.assert_allclose(logits[:, :500], golden, atol=1e-5 * np.abs(golden).max())


def test_neither_training_nor_another_initialization_changes_it(records, electra_run):
    run = run_with(records, electra_run, initialization__scheme="adjacent")
    state = tiny_run.state_of(run)
    saved = pretrained.read(electra_run).weights
    network = state.model.generator

    def compare():
        np.testing.assert_array_equal(
            network.encoder.encoder_layers[0].attention.query.kernel,
            saved["generator/encoder/layer_0/attention/self/query/kernel"])
        np.testing.assert_array_equal(  # The discriminator's too, in that run.
            network.encoder.embeddings.words.table, saved["electra/embeddings/word_embeddings"])

    compare()
    assert not any("frozen" in name for name in tiny_run.weights(state))
    tiny_run.step_function(run, state)(next(iter(tiny_run.batches(run, 1))))
    compare()


def test_a_generator_of_another_vocabulary_is_refused(electra_run, tmp_path):
    other = Vocabulary((*tiny_records.VOCABULARY.tokens[:-1], "another"))
    tiny_records.write(tmp_path / "other", other)
    with pytest.raises(UserError, match="has another vocabulary"):
        run_with(tmp_path / "other", electra_run)


def test_a_generator_of_fewer_positions_than_the_records_is_refused(records, tmp_path):
    generator = tiny_networks.pretrained(
        tiny_records.VOCABULARY, model__max_position_embeddings=16)
    pretrained.write(generator, storage.path(tmp_path / "short"), Format.RUN)
    with refused("has 16 positions.* 32 tokens long; build records with --max_seq_length=16"):
        run_with(records, tmp_path / "short")


def test_a_run_without_a_generator_is_refused():
    weights = {name: value for name, value in golden_files.load("mlm_weights").items()
               if "predictions" not in name}
    with pytest.raises(UserError, match="runs/one has no generator. Name a run of"):
        frozen("mlm", weights)


def train(records, model_dir, **changes):
    config = tiny_run.config(**{
        "objective__name": "two_stage", "training__num_train_steps": 6, **SHORT} | changes)
    loop.pretrain(config, storage.path(records), storage.path(model_dir))


def test_a_first_stage_that_was_killed_before_a_checkpoint_is_trained(
        records, tmp_path, monkeypatch):
    trained = mock.Mock(side_effect=UserError("trained"))
    monkeypatch.setattr(loop, "train", trained)
    (tmp_path / "generator").mkdir()
    (tmp_path / "generator" / "metrics.jsonl").write_text('{"kind": "train", "step": 1}\n')
    with refused("trained"):
        train(records, tmp_path)
    assert trained.call_args.args[0].config.objective.name == "mlm"


def test_a_first_stage_of_other_settings_is_refused(records, tmp_path):
    """The second stage compares its own settings, so it never begins with others."""
    tiny_encoder.write(tmp_path / "generator", objective__name="mlm", model__num_layers=1,
                       training__num_train_steps=7)
    (tmp_path / "generator" / "metrics.jsonl").write_text('{"kind": "checkpoint", "step": 7}\n')
    with refused("optimizer.learning_rate: 0.003 in the run, 0.5 now"):
        train(records, tmp_path, training__num_train_steps=14, optimizer__learning_rate=0.5)


@pytest.mark.slow
def test_two_stages_are_one_command_that_goes_on_in_either(records, tmp_path, capsys):
    uninterrupted = tmp_path / "whole"
    train(records, uninterrupted)
    printed = capsys.readouterr().out
    assert "stage 1 of 2: the generator, 3 steps" in printed
    assert "stage 2 of 2: the discriminator, 3 steps" in printed
    expected = named_arrays.of_run(uninterrupted)
    # The generator is the first stage's last, and the discriminator began with its encoder.
    first = named_arrays.of_run(uninterrupted / "generator")
    np.testing.assert_array_equal(expected["frozen_generator/embeddings/word_embeddings"],
                                  first["electra/embeddings/word_embeddings"])
    moved = np.abs(expected["electra/embeddings/word_embeddings"]
                   - first["electra/embeddings/word_embeddings"]).max()
    # Three steps, none of more than sqrt(1000) / 10 times the rate: Adam without correction.
    assert 0 < moved < 3 * 3.2 * 3e-3
    in_second = shutil.copytree(uninterrupted, tmp_path / "in_second")
    in_first = tmp_path / "in_first"
    shutil.copytree(uninterrupted / "generator", in_first / "generator")
    for resumed, stage in (in_first, "generator"), (in_second, "."):
        checkpoint_files.remove(resumed / stage / "checkpoints", {2, 3})
        train(records, resumed)
        named_arrays.assert_close(named_arrays.of_run(resumed), expected, atol=1e-6)
