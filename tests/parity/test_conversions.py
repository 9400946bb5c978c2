"""A checkpoint of the reference's weights computes the reference's numbers in every format."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.parity import test_networks
from tests.support import golden_files, named_arrays

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


@pytest.mark.parametrize("variant", test_networks.WITH_DISCRIMINATOR)
def test_it_computes_the_same_after_every_conversion(variant, tmp_path):
    weights = golden_files.load(f"{variant}_weights")
    write_checkpoint(weights, tmp_path / "reference")
    networks = pretrained.read(tmp_path / "reference", num_heads=NUM_HEADS)
    for form in (Format.HUGGING_FACE, Format.RUN, Format.GOOGLE):
        pretrained.write(networks, tmp_path / form, form)
        found = pretrained.read(tmp_path / form, num_heads=NUM_HEADS)
        named_arrays.assert_close(found.weights, weights)
        model = test_networks.build(variant, found.model)
        test_networks.require_equal_generator(variant, model)
        test_networks.require_equal_discriminator(variant, model)
