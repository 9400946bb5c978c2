"""Networks move between the formats without a difference; what doesn't fit is refused by name."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file
from scipy import special

from electra_tf.checkpoints import formats, google
from electra_tf.checkpoints.formats import Format
from electra_tf.command_line import UserError
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.task import TaskSpec
from electra_tf.tools import convert_checkpoint
from tests import command_flags, tiny_encoder

def require_equal(first, second):
    assert first.weights.keys() == second.weights.keys()
    for name, value in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], value)
    assert first.model.discriminator == second.model.discriminator
    assert first.model.generator == second.model.generator
    assert first.text.vocabulary == second.text.vocabulary
    assert (first.text.lower_case, first.text.strip_accents) == (
        second.text.lower_case, second.text.strip_accents)


@pytest.mark.parametrize("form", list(Format))
def test_a_format_gives_back_what_it_was_given(networks, tmp_path, form):
    formats.write(networks, tmp_path / "out", form)
    assert formats.format_of(tmp_path / "out") is form
    options = {"num_heads": networks.model.num_heads} if form is Format.GOOGLE else {}
    found = formats.read(tmp_path / "out", **options)
    if form is Format.GOOGLE:  # It knows neither dropout nor the range of initial weights.
        assert found.model.discriminator.num_layers == 2
        assert found.weights.keys() == networks.weights.keys()
        for name, value in networks.weights.items():
            np.testing.assert_array_equal(found.weights[name], value)
    else:
        require_equal(networks, found)


def test_a_checkpoint_of_google_may_hold_slots_and_a_step(networks, tmp_path):
    google.write(networks, tmp_path / "first")
    names = sorted(networks.weights)
    values = [networks.weights[name] for name in names]
    more = [*names, *(f"{name}/adam_m" for name in names), "global_step"]
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(tmp_path / "second.ckpt-4")), tensor_names=tf.constant(more),
        shape_and_slices=tf.constant([""] * len(more)),
        tensors=[tf.constant(value) for value in [*values, *values, np.int64(4)]])
    found = formats.read(tmp_path / "second.ckpt-4", num_heads=2,
                         vocab_file=tmp_path / "first" / "vocab.txt")
    assert found.weights.keys() == networks.weights.keys()
    assert found.model.generator.hidden_size == 16


