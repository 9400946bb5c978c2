"""Published models: their shapes, and the FLOPs of their training by the paper's count.

The count is that of Google's table of FLOPs; ELECTRA prints two digits of it (tables 1 to 4). It
simplifies other models: it ignores how ALBERT and RoBERTa differ from BERT, and counts GPT with
ELECTRA's head over all tokens.
"""

import dataclasses
from typing import NamedTuple

from electra_tf.apps.planning.workload import PUBLISHED_LENGTHS
from electra_tf.config.model import EncoderConfig
from electra_tf.config.sizes import SIZES
from electra_tf.modeling import paper_flops
from electra_tf.modeling.weight_table import (
    discriminator,
    generator,
    language_model,
    whole_encoder,
)

INFERENCE_LENGTH = 128
"""Tokens of the paper's inference FLOPs (table 1)."""
_BERT_VOCABULARY = 30522


class Cost(NamedTuple):
    """FLOPs of a model; None where they are unknown."""

    train: float | None
    inference: float | None = None
    """FLOPs of one forward pass over 128 tokens."""


class PublishedModel(NamedTuple):
    """A model, its cost by our count, and the cost that ELECTRA's tables 1 to 4 print."""

    name: str
    parameters: str
    """The published number, in millions (M) or billions (B)."""
    counted: Cost
    printed: Cost


def _shape(hidden: int, layers: int, *, embedding: int = 0,
           vocabulary: int = _BERT_VOCABULARY, **others: int) -> EncoderConfig:
    """Returns BERT's proportions: a head per 64 units, a feed-forward layer of 4 H."""
    sizes = {"num_heads": hidden // 64, "intermediate_size": 4 * hidden} | others
    return EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02, **sizes)


def _language_model(shape: EncoderConfig, *, batch: int, steps: float, length: int = 512,
                    fraction: float | None = None) -> Cost:
    """Returns the cost of a network that predicts a fraction of the tokens; None for BERT's."""
    network = language_model("language model", shape, whole_encoder(shape), fraction=fraction)
    return Cost(batch * length * steps * paper_flops.per_token([network], length),
                paper_flops.inference(shape, INFERENCE_LENGTH))


def _electra(size: str, steps: int | None = None) -> Cost:
    """Returns the cost of ELECTRA with the settings of a model size."""
    model, training, length = SIZES[size].model, SIZES[size].training, PUBLISHED_LENGTHS[size]
    networks = discriminator(model.discriminator), generator(model)
    tokens = training.train_batch_size * length * (steps or training.num_train_steps)
    return Cost(tokens * paper_flops.per_token(networks, length),
                paper_flops.inference(model.discriminator, INFERENCE_LENGTH))


def _t5() -> Cost:
    """Returns the cost of T5's encoder and decoder, each over 512 tokens.

    As in Google's table, the weighted sum of values and the output of attention count as if all
    heads together were H wide. They are 16 times as wide.
    """
    shape = _shape(1024, 24, vocabulary=32000, num_heads=128, intermediate_size=65536)
    length, batch, steps, projected = 512, 2048, 1e6, 128 * 128
    blocks = shape.num_layers * sum(
        paper_flops.block(shape, length, projected_size=projected, attentions=attentions)
        for attentions in (1, 2))
    # The head above no layers, and the embeddings of encoder and decoder.
    ends = paper_flops.embedding(shape, length) + paper_flops.forward(language_model(
        "T5", dataclasses.replace(shape, num_layers=0), {}, fraction=1.0), length)
    return Cost(2 * batch * steps * (blocks + ends))


# ELMo and XLNet are not Transformer encoders that `paper_flops` can count. Google let TensorFlow
# count the FLOPs of a forward pass of one batch.
_ELMO_FLOPS, _ELMO_TOKENS, _ELMO_WORDS = 568_093_262_680, 20 * 128, 768_648_884
_XLNET_FLOPS, _XLNET_BATCH = 15_064_773_691_518, 32
_BERT_BASE, _BERT_LARGE = _shape(768, 12), _shape(1024, 24)
_ROBERTA = _shape(1024, 24, vocabulary=50265)
_UNKNOWN = Cost(None)
PUBLISHED = (
    # Peters et al., 2018: 10 epochs of the 1 Billion Word Benchmark.
    PublishedModel("ELMo", "96M", Cost(2 * 10 * _ELMO_WORDS * _ELMO_FLOPS / _ELMO_TOKENS),
                   Cost(3.3e18, 2.6e10)),
    # Radford et al., 2018: every token is predicted.
    PublishedModel("GPT", "117M", _language_model(
        _shape(768, 12, vocabulary=40000), batch=128, steps=960_800, fraction=1.0),
        Cost(4.0e19, 3.0e10)),
    # ELECTRA, section 3.3: trained for as many FLOPs as ELECTRA-Small.
    PublishedModel("BERT-Small", "14M", _language_model(
        _shape(256, 12, embedding=128), batch=128, steps=1.45e6, length=128), Cost(1.4e18, 3.7e9)),
    PublishedModel("ELECTRA-Small", "14M", _electra("small"), Cost(1.4e18, 3.7e9)),
    # Devlin et al., 2019, appendix A.2.
    PublishedModel("BERT-Base", "110M", _language_model(_BERT_BASE, batch=256, steps=1e6),
                   Cost(6.4e19, 2.9e10)),
    PublishedModel("ELECTRA-Base", "110M", _electra("base"), Cost(6.4e19, 2.9e10)),
    PublishedModel("BERT-Large", "335M", _language_model(_BERT_LARGE, batch=256, steps=1e6),
                   Cost(1.9e20)),
    # Liu et al., 2019, table 4.
    PublishedModel("RoBERTa-100K", "356M", _language_model(_ROBERTA, batch=8000, steps=100_000),
                   Cost(6.4e20)),
    PublishedModel("ELECTRA-400K", "335M", _electra("large"), Cost(7.1e20)),
    # ELECTRA, section 3.4.
    PublishedModel("ELECTRA-1.75M", "335M", _electra("large", 1_750_000), Cost(3.1e21)),
    PublishedModel("RoBERTa-500K", "356M", _language_model(_ROBERTA, batch=8000, steps=500_000),
                   Cost(3.2e21)),
    # Yang et al., 2019: 500,000 steps of 8,192.
    PublishedModel("XLNet", "360M", Cost(2 * 500_000 * 8192 * _XLNET_FLOPS / _XLNET_BATCH),
                   Cost(3.9e21)),
    # Lan et al., 2020.
    PublishedModel("ALBERT-xxlarge", "235M", _language_model(
        _shape(4096, 12, embedding=128, vocabulary=30000), batch=4096, steps=1.5e6), Cost(3.1e22)),
    # Raffel et al., 2020: 1,000,000 steps of 2,048 x 512.
    PublishedModel("T5-11B", "11B", _t5(), _UNKNOWN))
"""The published models, cheapest of a generation first."""
