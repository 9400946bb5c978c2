"""Adam's steps equal the reference's, weights and slots, and LAMB's equal Model Garden's."""

import numpy as np
import pytest
import tensorflow as tf
from official.modeling.optimization import lamb as model_garden

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.training.adam import Adam, Lamb, clip_factor_and_norm, has_weight_decay
from electra_tf.training.schedule import Schedule
from tests.support import golden_files

CONFIG = OptimizerConfig()


def apply(optimizer, gradients, step, rate=0.1, finite=True):
    optimizer.apply(gradients, tf.constant(rate), step=tf.constant(step), clip_factor=tf.ones([]),
                    finite=tf.constant(finite))


class Trajectory:
    """One of the golden runs: initial weights, then gradients and results step by step."""

    def __init__(self, name: str):
        self.golden = golden_files.load(f"optimizer_{name}")
        initial = golden_files.load_part(f"optimizer_{name}", "init")
        self.names = list(initial)
        self.variables = [tf.Variable(value, name=name) for name, value in initial.items()]

    def gradients(self, step: int) -> list[tf.Tensor]:
        return [tf.constant(self.golden[f"step{step}|grad|{name}"]) for name in self.names]

    def assert_equal_after(self, step: int, optimizer: Adam) -> None:
        """Weights and slots of every variable, to 1e-6 of the largest value.

        The kernel's second moments carry the rounding of 1 - 0.999 to float32 as a factor.
        """
        rounding = float(1 - np.float32(0.999)) / 0.001
        columns = (self.names, self.variables, optimizer.first_moments, optimizer.second_moments)
        for name, value, first, second in zip(*columns, strict=True):
            for kind, actual in (("value|{}", value), ("slot|{}/adam_m", first),
                               ("slot|{}/adam_v", second / rounding)):
                expected = self.golden[f"step{step}|{kind.format(name)}"]
                np.testing.assert_allclose(
                    actual, expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=name)


def factor(name: str) -> float:
    """The reference's exponents for two layers, decay 0.8."""
    powers = {"task_specific": 0, "layer_1": 2, "layer_0": 3, "embeddings": 4}
    return 0.8 ** next(power for part, power in powers.items() if part in name)


@pytest.mark.parametrize(("golden", "peak", "warmup", "layers"), [
    ("pretrain", 0.01, 2, False), ("finetune_layerwise", 0.02, 1, True)])
def test_five_steps_equal_the_reference(golden, peak, warmup, layers):
    run = Trajectory(golden)
    factors = [factor(name) for name in run.names] if layers else None
    optimizer = Adam(CONFIG, run.variables, factors)
    schedule = Schedule(peak=peak, decay_steps=10, warmup_steps=warmup)
    for step in range(5):
        gradients = run.gradients(step)
        clip_factor, norm = clip_factor_and_norm(gradients, CONFIG.clip_norm)
        if not layers:
            np.testing.assert_allclose(
                float(schedule(step)), run.golden[f"step{step}|lr|lr"], rtol=1e-6)
            np.testing.assert_allclose(norm, run.golden[f"step{step}|clip_norm"], rtol=1e-6)
        optimizer.apply(gradients, schedule(step), step=tf.constant(step), clip_factor=clip_factor,
                        finite=tf.constant(True))
        run.assert_equal_after(step, optimizer)


def test_the_norm_counts_a_rows_gradients_after_they_are_summed():
    golden = golden_files.load("optimizer_finetune_sparse_embedding_gradient")
    gradients = [tf.constant(value) for key, value in golden.items()
                 if key.startswith("step0|grad|") and "word_" not in key]
    summed = np.zeros_like(golden["init|electra/embeddings/word_embeddings"])
    np.add.at(summed, golden["step0|ids"], golden["step0|coef"])
    gradients.append(tf.constant(summed))
    _, norm = clip_factor_and_norm(gradients, 1.0)
    np.testing.assert_allclose(norm, golden["step0|dense_norm"], rtol=1e-6)


def test_bias_correction_is_that_of_the_textbook():
    variable = tf.Variable([1.0, -2.0, 0.5], name="dense/bias")
    optimizer = Adam(OptimizerConfig(bias_correction=True, epsilon=1e-3), [variable])
    expected, first, second = variable.numpy().astype(float), np.zeros(3), np.zeros(3)
    random = np.random.default_rng(0)
    for step in range(20):
        gradient = random.normal(size=3) * [1e-3, 1.0, 10.0]
        apply(optimizer, [tf.constant(gradient, tf.float32)], step)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        expected -= 0.1 * (first / (1 - 0.9 ** (step + 1))) / (
            np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-3)
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-5)


def test_all_but_biases_and_layer_norms_decay_and_other_names_are_refused():
    assert [has_weight_decay(path) for path in (
        "a/dense/kernel:0", "a/word_embeddings", "a/bias", "b/output_bias", "a/LayerNorm/gamma",
        "a/beta")] == [True, True, False, False, False, False]
    with pytest.raises(ValueError, match="no weight-decay group for the weight 'a/scale'"):
        has_weight_decay("a/scale")


@pytest.mark.parametrize("weight_decay", [0.01, 0.0])
def test_ten_steps_of_lamb_equal_model_gardens(weight_decay):
    names = ("layer_0/dense/kernel", "layer_0/dense/bias", "LayerNorm/gamma", "word_embeddings")
    random = np.random.default_rng(0)
    values = [random.normal(size=shape) for shape in ((4, 3), (3,), (4,), (6, 4))]
    variables, expected = ([tf.Variable(value, name=name, dtype=tf.float32)
                     for name, value in zip(names, values, strict=True)] for _ in range(2))
    optimizer = Lamb(OptimizerConfig(bias_correction=True, weight_decay=weight_decay), variables)
    # Its list of weights without adaptation is that of weights without decay.
    peer = model_garden.LAMB(learning_rate=0.01, weight_decay_rate=weight_decay,
                             exclude_from_weight_decay=["bias", "gamma"])
    for step in range(10):
        gradients = [tf.constant(random.normal(size=variable.shape), tf.float32)
                     for variable in variables]
        apply(optimizer, gradients, step, rate=0.01)
        peer.apply_gradients(zip(gradients, expected, strict=True))
    apply(optimizer, [tf.fill(variable.shape, np.nan) for variable in variables], 10, finite=False)
    for name, variable, other in zip(names, variables, expected, strict=True):
        np.testing.assert_allclose(variable, other, rtol=2e-6, atol=1e-7, err_msg=name)
