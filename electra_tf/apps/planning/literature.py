"""What other models of the literature cost: shapes and lengths of training, counted as the paper.

The count is that of Google's table of FLOPs, of which ELECTRA prints two digits (tables 1 to 4). It
is a reading of the other papers, simpler than their models in places: ALBERT's and RoBERTa's
differences from BERT are left out, and GPT is counted with ELECTRA's head over all tokens.
"""

import dataclasses

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """A model, what it cost by our count, and what the paper's tables say."""

    name: str
    parameters: str
    """As published, in millions (M) or billions (B)."""
    train_flops: float
    """Counted."""
    printed_train_flops: float | None = None
    """ELECTRA, tables 1 to 4; None for what is in none of them."""
    inference_flops: float | None = None
    """Counted, of one answer about 128 tokens; None where it isn't counted."""
    printed_inference_flops: float | None = None
    """ELECTRA, table 1."""
    source: str
    """Source of shape, batch, length and steps."""


def _shape(hidden: int, layers: int, *, embedding: int = 0,
           vocabulary: int = _BERT_VOCABULARY, **others: int) -> EncoderConfig:
    """Returns BERT's proportions: a head per 64 units, a feed-forward layer of 4 H."""
    sizes = {"num_heads": hidden // 64, "intermediate_size": 4 * hidden} | others
    return EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02, **sizes)


def _language_model(
    shape: EncoderConfig, *, batch: int, steps: float, length: int = 512,
    fraction: float | None = None
) -> dict[str, float]:
    """Returns the cost of a network that predicts a fraction of the tokens; None for BERT's."""
    network = language_model(
        "language model", shape, whole_encoder(shape), fraction=fraction)
    return {
        "train_flops": batch * length * steps * paper_flops.per_token([network], length),
        "inference_flops": paper_flops.inference(shape, INFERENCE_LENGTH)}


def _electra(size: str, steps: int | None = None) -> dict[str, float]:
    """Returns what ELECTRA costs, with the settings that this program has for a model size."""
    model, training, length = SIZES[size].model, SIZES[size].training, PUBLISHED_LENGTHS[size]
    networks = discriminator(model.discriminator), generator(model)
    return {"train_flops": training.train_batch_size * length
            * (steps or training.num_train_steps) * paper_flops.per_token(networks, length),
            "inference_flops": paper_flops.inference(model.discriminator, INFERENCE_LENGTH)}


def _counted(train_flops: float) -> dict[str, float]:
    """Returns the cost of a model whose answers aren't counted."""
    return {"train_flops": train_flops}


def _t5_train_flops() -> float:
    """Returns what T5's encoder and decoder cost, each over 512 tokens.

    The weighted sum of values and the output of attention count as if all heads were as wide as H,
    as in Google's table; they are 16 times as wide.
    """
    shape = _shape(1024, 24, vocabulary=32000, num_heads=128, intermediate_size=65536)
    length, batch, steps, projected = 512, 2048, 1e6, 128 * 128
    blocks = shape.num_layers * sum(
        paper_flops.block(shape, length, projected_size=projected, attentions=attentions)
        for attentions in (1, 2))
    # The head above no layers, and the embeddings of encoder and decoder.
    ends = paper_flops.embedding(shape, length) + paper_flops.forward(language_model(
        "T5", dataclasses.replace(shape, num_layers=0), {}, fraction=1.0), length)
    return 2 * batch * steps * (blocks + ends)


# ELMo and XLNet are no Transformer encoders as `flops` counts them. Google had TensorFlow count the
# operations of a forward pass, and so many it were.
_ELMO_FLOPS_PER_BATCH, _ELMO_BATCH_TOKENS = 568_093_262_680, 20 * 128
_ELMO_WORDS = 768_648_884
_XLNET_FLOPS_PER_BATCH, _XLNET_BATCH = 15_064_773_691_518, 32

_BERT = "Devlin et al., 2019, appendix A.2"
_ROBERTA = _shape(1024, 24, vocabulary=50265)
_ROWS = (
    ("ELMo", "96M", 3.3e18, 2.6e10, _counted(
        2 * 10 * _ELMO_WORDS * _ELMO_FLOPS_PER_BATCH / _ELMO_BATCH_TOKENS),
     "Peters et al., 2018: 10 epochs of the 1 Billion Word Benchmark"),
    ("GPT", "117M", 4.0e19, 3.0e10, _language_model(
        _shape(768, 12, vocabulary=40000), batch=128, steps=960_800, fraction=1.0),
     "Radford et al., 2018: every token is predicted"),
    ("BERT-Small", "14M", 1.4e18, 3.7e9, _language_model(
        _shape(256, 12, embedding=128), batch=128, steps=1.45e6, length=128),
     "ELECTRA, section 3.3: trained for as many FLOPs as ELECTRA-Small"),
    ("ELECTRA-Small", "14M", 1.4e18, 3.7e9, _electra("small"), "ELECTRA, table 6"),
    ("BERT-Base", "110M", 6.4e19, 2.9e10, _language_model(
        _shape(768, 12), batch=256, steps=1e6), _BERT),
    ("ELECTRA-Base", "110M", 6.4e19, 2.9e10, _electra("base"), "ELECTRA, table 6"),
    ("BERT-Large", "335M", 1.9e20, None, _language_model(
        _shape(1024, 24), batch=256, steps=1e6), _BERT),
    ("RoBERTa-100K", "356M", 6.4e20, None, _language_model(
        _ROBERTA, batch=8000, steps=100_000), "Liu et al., 2019, table 4"),
    ("ELECTRA-400K", "335M", 7.1e20, None, _electra("large"), "ELECTRA, table 6"),
    ("ELECTRA-1.75M", "335M", 3.1e21, None, _electra("large", 1_750_000),
     "ELECTRA, section 3.4"),
    ("RoBERTa-500K", "356M", 3.2e21, None, _language_model(
        _ROBERTA, batch=8000, steps=500_000), "Liu et al., 2019, table 4"),
    ("XLNet", "360M", 3.9e21, None, _counted(
        2 * 500_000 * 8192 * _XLNET_FLOPS_PER_BATCH / _XLNET_BATCH),
     "Yang et al., 2019: 500,000 steps of 8,192"),
    ("ALBERT-xxlarge", "235M", 3.1e22, None, _language_model(
        _shape(4096, 12, embedding=128, vocabulary=30000), batch=4096, steps=1.5e6),
     "Lan et al., 2020"),
    ("T5-11B", "11B", None, None, _counted(_t5_train_flops()),
     "Raffel et al., 2020: 1,000,000 steps of 2,048 x 512"),
)
PUBLISHED = tuple(PublishedModel(
    name=name, parameters=parameters, printed_train_flops=train, printed_inference_flops=inference,
    source=source, **counted) for name, parameters, train, inference, counted, source in _ROWS)
"""Cheapest of a generation first."""
