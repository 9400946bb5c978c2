"""Learning rates equal the reference's, step by step and layer by layer."""

import dataclasses

import numpy as np

from electra_tf.config.finetuning import FinetuningOptimizerConfig
from electra_tf.config.optimization import OptimizerConfig
from electra_tf.finetuning.loop import rate_factors
from electra_tf.training.schedule import Schedule
from tests.support import golden_files

CASES = {
    "linear_warmup": Schedule(peak=5e-4, decay_steps=100, warmup_steps=10),
    "sqrt_warmup_proportion": Schedule(peak=1e-3, decay_steps=40, warmup_steps=4, power=0.5),
    "no_warmup": Schedule(peak=1e-3, decay_steps=10, warmup_steps=0),
    "both_warmups_fractional": Schedule(peak=2e-3, decay_steps=25, warmup_steps=12.5),
}


CONSTANT = [0.0, 0.25, 0.5, 0.75, *[1.0] * 20]


def test_rates_equal_the_reference_and_stay_zero_at_the_end():
    golden = golden_files.load("optimizer_learning_rates")
    golden["no_warmup|lr"][0] = 1e-3  # 0/0 on newer TensorFlow; the full rate on TensorFlow 1.15.
    for name, schedule in CASES.items():
        computed = [float(schedule(step)) for step in range(len(golden[f"{name}|lr"]))]
        np.testing.assert_allclose(computed, golden[f"{name}|lr"], rtol=1e-6, atol=1e-12)
        assert float(schedule(schedule.decay_steps + 2)) == 0.0


def test_a_warm_up_of_a_fraction_of_a_step_is_exact():
    # The reference: warm-up = max(0.1 * 33, 0) = 3.3 steps.
    schedule = Schedule.from_config(
        FinetuningOptimizerConfig(learning_rate=1e-3, layerwise_decay=1.0), num_train_steps=33)
    expected = [0.0, 1e-3 * 32 / 33 / 3.3, 1e-3 * 31 / 33 * 2 / 3.3, 1e-3 * 30 / 33 * 3 / 3.3,
                1e-3 * 29 / 33]
    np.testing.assert_allclose([float(schedule(step)) for step in range(5)], expected, rtol=1e-6)


def test_an_extension_has_a_schedule_of_its_own_with_a_short_warm_up():
    config = OptimizerConfig(learning_rate=1.0, warmup_steps=4)
    first, extended = Schedule.from_config(config, 20), Schedule.from_config(config, 60, [20, 30])
    assert [float(extended(step)) for step in range(20)] == [
        float(first(step)) for step in range(20)]
    # Warm-ups of a tenth of 10 and of 30 steps.
    expected = {20: 0.0, 21: 1 - 1 / 10, 29: 1 / 10, 30: 0.0, 31: (1 - 1 / 30) / 3,
                33: 1 - 3 / 30, 59: 1 / 30, 60: 0.0}
    for step, rate in expected.items():
        np.testing.assert_allclose(float(extended(step)), rate, rtol=1e-5, atol=1e-7)


def test_a_stable_rate_decays_at_the_end_and_continues_in_extensions():
    config = OptimizerConfig(learning_rate=1.0, warmup_steps=4, decay_fraction=0.25)
    stable = dataclasses.replace(config, decay_fraction=0.0)
    schedules = {
        # 20 steps, the last 5 of which decay; the same with power 2.
        Schedule.from_config(config, 20): [*CONSTANT[:15], 1.0, 0.8, 0.6, 0.4, 0.2, 0.0],
        Schedule.from_config(dataclasses.replace(config, decay_power=2.0), 20): [
            *CONSTANT[:15], 1.0, 0.64, 0.36, 0.16, 0.04, 0.0],
        # Without a decay, also in extensions after 10 and 16 steps.
        Schedule.from_config(stable, 20): CONSTANT[:21],
        Schedule.from_config(stable, 20, [10, 16]): CONSTANT[:21],
        # Stable up to 10 and 18 steps; a quarter of 20 would have begun before the extension.
        Schedule.from_config(config, 20, [10, 18], 18): [*CONSTANT[:18], 1.0, 0.5, 0.0],
        Schedule.from_config(config, 24, [10], 10): [*CONSTANT[:18], *(1 - np.arange(7) / 6)],
        # An extension of 8 steps after a decay warms up for a tenth of them, and decays in two.
        Schedule.from_config(config, 28, [10, 20], 10): [
            *CONSTANT[:15], 1.0, 0.8, 0.6, 0.4, 0.2, 0.0, *[1.0] * 6, 0.5, 0.0]}
    for schedule, expected in schedules.items():
        np.testing.assert_allclose([float(schedule(step)) for step in range(len(expected))],
                                   expected, rtol=1e-6, atol=1e-7)


PATHS = ["head/dense/kernel", "electra/encoder/layer_2/output/dense/kernel",
         "electra/encoder/layer_0/attention/self/query/bias",
         "electra/embeddings_project/kernel", "electra/embeddings/word_embeddings"]


def test_rates_of_layers_by_hand():
    assert rate_factors(PATHS, num_layers=3, decay=0.5) == [1, 1 / 2, 1 / 8, 1 / 16, 1 / 16]
    assert rate_factors(PATHS, num_layers=3, decay=0.5, skip_first=True) == [
        1, 1 / 4, 1 / 16, 1 / 32, 1 / 32]
    assert rate_factors(PATHS, num_layers=3, decay=1.0, skip_first=True) == [1.0] * 5


def test_skipping_one_gives_the_rates_of_the_reference():
    golden = golden_files.load("optimizer_learning_rates")
    schedule = Schedule(peak=1e-4, decay_steps=30, warmup_steps=3)
    keys = ("task_specific/", "encoder/layer_2/", "encoder/layer_0/", "/embeddings_project/",
            "/embeddings/")
    for key, factor in zip(keys, rate_factors(PATHS, num_layers=3, decay=0.8, skip_first=True),
                           strict=True):
        rates = golden[f"layerwise_0.8_3_layers|{key}"]
        computed = [factor * float(schedule(step)) for step in range(len(rates))]
        np.testing.assert_allclose(computed, rates, rtol=1e-5, atol=1e-12)
