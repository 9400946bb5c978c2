"""Rates fall from the head to the embeddings, by the paper's exponents or the reference's."""

import numpy as np
import pytest

from electra_tf.training.layer_rates import rate_factors
from electra_tf.training.schedule import Schedule
from tests.parity import golden_files

PATHS = ["head/dense/kernel", "electra/encoder/layer_2/output/dense/kernel",
         "electra/encoder/layer_0/attention/self/query/bias",
         "electra/embeddings_project/kernel", "electra/embeddings/word_embeddings"]


def test_by_hand():
    assert rate_factors(PATHS, num_layers=3, decay=0.5) == [1, 1 / 2, 1 / 8, 1 / 16, 1 / 16]
    assert rate_factors(PATHS, num_layers=3, decay=0.5, skip_first=True) == [
        1, 1 / 4, 1 / 16, 1 / 32, 1 / 32]
    assert rate_factors(PATHS, num_layers=3, decay=1.0, skip_first=True) == [1.0] * 5


def test_skipping_one_gives_the_rates_of_the_reference():
    golden = golden_files.load("optimizer_learning_rates")
    schedule = Schedule(peak=1e-4, num_train_steps=30, warmup_steps=3)
    keys = ("task_specific/", "encoder/layer_2/", "encoder/layer_0/", "/embeddings_project/",
            "/embeddings/")
    for key, factor in zip(keys, rate_factors(PATHS, num_layers=3, decay=0.8, skip_first=True),
                           strict=True):
        rates = golden[f"layerwise_0.8_3_layers|{key}"]
        ours = [factor * float(schedule(step)) for step in range(len(rates))]
        np.testing.assert_allclose(ours, rates, rtol=1e-5, atol=1e-12)


def test_a_layer_that_isnt_there_is_refused():
    with pytest.raises(ValueError, match="beyond the encoder's 2 layers"):
        rate_factors(PATHS, num_layers=2, decay=0.8)
