"""What holds for every objective in the registry, the next one too."""

import dataclasses
import functools
import shutil

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.objectives import OBJECTIVES, all_metrics, objective_class, panels
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.pretraining.evaluation import Evaluator, report
from electra_tf.reporting.samples import terminal_page
from tests.support import tiny_encoder, tiny_run
from tests.support.golden_batch import CONTEXT, RNG
from tests.support.refusals import refused

EVERY = pytest.mark.parametrize("name", OBJECTIVES)


@pytest.fixture(scope="module")
def run_of(records, tmp_path_factory):
    """Returns a function from an objective's name, and changes, to a run that is ready.

    Where it takes another run's generator, that is one of a masked language model.
    """
    home = storage.path(tmp_path_factory.mktemp("home"))
    tiny_encoder.write(home / "generator", objective__name="mlm", model__num_layers=1)

    @functools.cache
    def made(name, model_dir=home, **changes):
        if name == "frozen_generator":
            changes["objective__generator"] = str(home / "generator")
        elif name == "two_stage" and model_dir is not home:
            shutil.copytree(home / "generator", model_dir / "generator")
        return tiny_run.run_on(records, model_dir, objective__name=name,
                               **{"model__num_layers": 1} | changes)

    return made


def first_batch(run):
    return next(iter(tiny_run.batches(run, 1)))


def eager_losses(run, model, batch):
    """Returns an objective's inputs, outcome and the mean of every loss, without dropout."""
    rng = dataclasses.replace(RNG, seed=run.config.training.seed)
    inputs, denominators = run.objective.prepare_inputs(batch, rng)
    output = run.objective.compute(model, inputs, rng, training=True)
    assert denominators.keys() == output.loss_sums.keys() == run.objective.loss_weights.keys()
    return inputs, output, {
        name: float(value / denominators[name]) for name, value in output.loss_sums.items()}


@pytest.fixture(scope="module")
def without_dropout(run_of):
    """Returns a function from an objective's name to a run, its networks and `eager_losses`."""
    @functools.cache
    def made(name, **changes):
        run = run_of(name, model__hidden_dropout=0.0, model__attention_dropout=0.0,
                     runtime__eval_steps=1, **changes)
        model = run.build_model()
        return run, model, eager_losses(run, model, first_batch(run))

    return made


@EVERY
def test_losses_have_weights_and_measures_and_exclude_padding(
        without_dropout, name):
    """The same rows with other tokens in their padding have the same losses."""
    run, model, (inputs, output, means) = without_dropout(name)
    assert means.keys() <= all_metrics().keys()
    rows = run.config.training.train_batch_size
    assert all(part.shape[0] == rows for part in tf.nest.flatten(inputs))
    assert all(value.shape[0] == rows for value in output.per_example.values())
    batch = first_batch(run)
    other = batch._replace(ids=tf.where(batch.padding_mask, batch.ids, 7))
    assert eager_losses(run, model, other)[2] == pytest.approx(means, rel=1e-5)


@EVERY
@pytest.mark.parametrize(("precision", "xla", "micro_batches", "tolerance"), [
    ("float32", False, 2, 1e-4),
    *(pytest.param(precision, xla, 1, tolerance, marks=pytest.mark.slow)
      for precision, xla, tolerance in (
          ("float32", True, 1e-5), ("bfloat16", False, 2e-2), ("bfloat16", True, 2e-2)))])
def test_a_step_changes_every_weight_and_has_the_losses_of_eager_float32(
        run_of, without_dropout, name, precision, xla, micro_batches, tolerance):
    run = run_of(name, training__precision=precision, model__hidden_dropout=0.0,
                 model__attention_dropout=0.0, runtime__gradient_accumulation_steps=micro_batches)
    state = tiny_run.state_of(run)
    before = tiny_run.weights(state)
    results = tiny_run.step_function(run, state, xla=xla)(first_batch(run))
    after = tiny_run.weights(state)
    assert [key for key in before if (before[key] == after[key]).all()] == []
    _, _, (_, output, losses) = without_dropout(name)
    measured = {key: float(value.total / value.weight) for key, value in output.metrics.items()}
    expected = losses | (measured if precision == "float32" else {})
    measured_values = {key: float(results[key].total / results[key].weight) for key in expected}
    assert measured_values == pytest.approx(expected, rel=tolerance, nan_ok=True)


@pytest.mark.parametrize(("name", "xla"), [("electra", False), ("electric", True)])
def test_a_step_with_rotary_positions_has_the_losses_of_eager_float32(
        run_of, without_dropout, name, xla):
    rotary = {"model__positions": "rotary"}
    run = run_of(name, model__hidden_dropout=0.0, model__attention_dropout=0.0, **rotary)
    state = tiny_run.state_of(run)
    results = tiny_run.step_function(run, state, xla=xla)(first_batch(run))
    _, _, (_, _, losses) = without_dropout(name, **rotary)
    assert {key: float(results[key].total / results[key].weight) for key in losses} == (
        pytest.approx(losses, rel=1e-5))
    assert losses != without_dropout(name)[2][2]


@EVERY
def test_a_step_changes_every_weight_of_modernberts_layers(run_of, name):
    run = run_of(name, model__architecture="modernbert", model__num_layers=2,
                 model__attention_window=4, model__embedding_size=24)
    if name == "electric":
        with refused("objective.name=electric has towers .* model.architecture=electra"):
            run.build_model()
        return
    state = tiny_run.state_of(run)
    before = tiny_run.weights(state)
    results = tiny_run.step_function(run, state, xla=name == "electra")(first_batch(run))
    after = tiny_run.weights(state)
    assert [key for key in before if (before[key] == after[key]).all()] == []
    assert all(np.isfinite(float(value.total)) for value in results.values())


@pytest.mark.parametrize("name", [
    name if name in ("electra", "electric", "mlm", "two_stage")
    else pytest.param(name, marks=pytest.mark.slow) for name in OBJECTIVES])
def test_an_evaluation_repeats_exactly_and_can_be_shown(
        without_dropout, name):
    run, model, _ = without_dropout(name)
    evaluator = Evaluator(run, model)
    results = evaluator.evaluate()
    assert results.keys() <= all_metrics().keys()
    assert all(all_metrics()[score].unit for score in results)
    assert evaluator.evaluate() == pytest.approx(results, nan_ok=True)
    assert ("unigram_auc" in results) == (run.objective.detection_logits is not None)
    samples = evaluator.samples(2)
    assert len(samples) == 2
    assert "tokens filled in" in terminal_page(samples)
    assert "word31" in terminal_page(samples)
    assert "evaluation at step 3" in report(run, results, 3, run.model_dir)


@EVERY
def test_a_registered_name_has_its_settings_and_its_losses_are_drawn(name):
    config = override(PretrainingConfig(), {"objective.name": name})
    objective, settings = objective_class(name)(config, CONTEXT), OBJECTIVES[name]
    assert type(objective.config.objective) is type(settings) and settings.name == name
    assert all(loss in panels()[all_metrics()[loss].panel] for loss in objective.loss_weights)


def test_the_losses_weights_are_the_papers_unless_configured():
    for settings, weight in (({}, 50.0), ({"objective.discriminator_loss_weight": 10}, 10.0)):
        config = override(PretrainingConfig(), settings)
        assert objective_class("electra")(config, CONTEXT).loss_weights == {
            "generator_loss": 1.0, "discriminator_loss": weight}
    mlm = override(PretrainingConfig(), {"objective.name": "mlm"})
    assert "objective.discriminator_loss_weight" not in flatten(mlm)
    with pytest.raises(UserError, match="objective.discriminator_loss_weight isn't a setting of "
                       r"this run: it belongs to objective.name=electra, electra_15, [\w, ]+, "
                       r"and this one is mlm"):
        override(mlm, {"objective.discriminator_loss_weight": 5})
