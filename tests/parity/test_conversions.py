"""A checkpoint of the reference's weights computes the reference's numbers in every format."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import formats
from electra_tf.checkpoints.weights import assign_weights
from electra_tf.export import conversion
from electra_tf.export.conversion import Format
from electra_tf.modeling.electra import ElectraModel
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.parity import golden_files
from tests.parity.test_networks import WITH_DISCRIMINATOR, masked_batch

ATOL = 1e-5
NUM_HEADS = 4


def write_checkpoint(weights, directory):
    """As TensorFlow 1's saver leaves it in training: with Adam's slots and the step."""
    directory.mkdir()
    values = dict(weights) | {"global_step": np.int64(4)}
    for name, value in weights.items():
        values |= {f"{name}/adam_m": value * 0.1, f"{name}/adam_v": value * value}
    tf.raw_ops.SaveV2(
        prefix=str(directory / "model.ckpt-4"), tensor_names=list(values),
        shape_and_slices=[""] * len(values), tensors=list(map(tf.constant, values.values())))
    words = (f"word{index}" for index in range(500 - len(SPECIAL_TOKENS)))
    Vocabulary((*SPECIAL_TOKENS, *words)).save(directory / "vocab.txt")


def outputs(networks, corrupted_ids):
    """Hidden states and logits of both networks, by the golden file's names."""
    model, (inputs, _) = ElectraModel(networks.model, seed=0), masked_batch()
    assign_weights(model.trainable_variables, networks.weights, networks.source)
    batch, positions = inputs.original, inputs.predictions.positions
    rest = batch.segment_ids, batch.valid
    logits = model.generator(inputs.ids, *rest, positions)[:, :500]
    return {"gen_sequence_output": model.generator.encoder(inputs.ids, *rest),
            "mlm_logits": tf.reshape(logits, [*positions.shape, 500]),
            "disc_sequence_output": model.discriminator.encoder(corrupted_ids, *rest),
            "disc_logits": model.discriminator(corrupted_ids, *rest)}


@pytest.mark.parametrize("variant", WITH_DISCRIMINATOR)
def test_it_computes_the_same_after_every_conversion(variant, tmp_path):
    weights = golden_files.load(f"{variant}_weights")
    golden = golden_files.load(f"{variant}_outputs")
    write_checkpoint(weights, tmp_path / "reference")
    networks = formats.read(tmp_path / "reference", num_heads=NUM_HEADS)
    for form in (Format.HUGGING_FACE, Format.RUN, Format.GOOGLE):
        conversion.write(networks, tmp_path / form, form)
        found = formats.read(tmp_path / form, num_heads=NUM_HEADS)
        assert found.weights.keys() == weights.keys()
        for name, value in weights.items():
            np.testing.assert_array_equal(found.weights[name], value)
        for name, value in outputs(found, golden["disc_input_ids"]).items():
            np.testing.assert_allclose(value, golden[name], rtol=0, atol=ATOL, err_msg=name)
