"""What other models of the literature cost: shapes and lengths of training, counted as the paper.

The count is that of Google's table of FLOPs, of which ELECTRA prints two digits (tables 1 to 4). It
is a reading of the other papers, simpler than their models in places: ALBERT's and RoBERTa's
differences from BERT are left out, and GPT is counted with ELECTRA's head over all tokens.
"""

import dataclasses

from electra_tf.apps.planning.workload import PUBLISHED_LENGTHS, paper_inference_flops
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import SIZES
from electra_tf.modeling.flops import (
    EncoderShape,
    paper_block_flops,
    paper_electra_flops_per_token,
    paper_embedding_flops,
    paper_mlm_flops_per_token,
    paper_mlm_head_flops,
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
    """Of shape, batch, length and steps."""


def _shape(hidden: int, layers: int, *, embedding: int = 0,
           vocabulary: int = _BERT_VOCABULARY) -> EncoderShape:
    """Returns BERT's proportions: a head per 64 units, a feed-forward layer of 4 H."""
    return EncoderShape(
        hidden_size=hidden, num_layers=layers, num_heads=hidden // 64,
        intermediate_size=4 * hidden, embedding_size=embedding or hidden, vocab_size=vocabulary)


def _language_model(
    shape: EncoderShape, *, batch: int, steps: float, length: int = 512, **head: float
) -> dict[str, float]:
    """Returns what a network costs that predicts tokens; `head` says how many of them."""
    return {
        "train_flops": batch * length * steps * paper_mlm_flops_per_token(
            shape, sequence_length=length, **head),
        "inference_flops": paper_inference_flops(shape, INFERENCE_LENGTH)}


def _electra(size: str, steps: float | None = None) -> dict[str, float]:
    """Returns what ELECTRA costs, with the settings that this program has for a model size."""
    config: PretrainingConfig = SIZES[size]
    shape, length = EncoderShape.of(config.model.discriminator), PUBLISHED_LENGTHS[size]
    steps = steps or config.training.num_train_steps
    return {
        "train_flops": config.training.train_batch_size * length * steps
        * paper_electra_flops_per_token(
            shape, EncoderShape.of(config.model.generator), sequence_length=length),
        "inference_flops": paper_inference_flops(shape, INFERENCE_LENGTH)}


def _t5_train_flops() -> float:
    """Returns what T5's encoder and decoder cost, each over 512 tokens.

    The weighted sum of values and the output of attention count as if all heads were as wide as H,
    as in Google's table; they are 16 times as wide.
    """
    shape = EncoderShape(hidden_size=1024, num_layers=24, num_heads=128, intermediate_size=65536,
                         embedding_size=1024, vocab_size=32000)
    length, batch, steps, projected = 512, 2048, 1e6, 128 * 128
    blocks = shape.num_layers * sum(
        paper_block_flops(shape, length, projected_size=projected, attentions=attentions)
        for attentions in (1, 2))
    ends = 2 * paper_embedding_flops(shape, length) + paper_mlm_head_flops(shape, length, 1.0)
    return 2 * batch * steps * (blocks + ends)


# ELMo and XLNet are no Transformer encoders as `flops` counts them. Google had TensorFlow count the
# operations of a forward pass, and so many it were.
_ELMO_FLOPS_PER_BATCH, _ELMO_BATCH_TOKENS = 568_093_262_680, 20 * 128
_ELMO_WORDS = 768_648_884
_XLNET_FLOPS_PER_BATCH, _XLNET_BATCH = 15_064_773_691_518, 32

PUBLISHED = (
    PublishedModel(
        name="ELMo", parameters="96M", printed_train_flops=3.3e18, printed_inference_flops=2.6e10,
        train_flops=2 * 10 * _ELMO_WORDS * _ELMO_FLOPS_PER_BATCH / _ELMO_BATCH_TOKENS,
        source="Peters et al., 2018: 10 epochs of the 1 Billion Word Benchmark"),
    PublishedModel(
        name="GPT", parameters="117M", printed_train_flops=4.0e19, printed_inference_flops=3.0e10,
        **_language_model(_shape(768, 12, vocabulary=40000), batch=128, steps=960_800,
                          predicted_fraction=1.0),
        source="Radford et al., 2018: every token is predicted"),
    PublishedModel(
        name="BERT-Small", parameters="14M", printed_train_flops=1.4e18,
        printed_inference_flops=3.7e9,
        **_language_model(_shape(256, 12, embedding=128), batch=128, steps=1.45e6, length=128),
        source="ELECTRA, section 3.3: trained for as many FLOPs as ELECTRA-Small"),
    PublishedModel(
        name="ELECTRA-Small", parameters="14M", printed_train_flops=1.4e18,
        printed_inference_flops=3.7e9, **_electra("small"), source="ELECTRA, table 6"),
    PublishedModel(
        name="BERT-Base", parameters="110M", printed_train_flops=6.4e19,
        printed_inference_flops=2.9e10, **_language_model(_shape(768, 12), batch=256, steps=1e6),
        source="Devlin et al., 2019, appendix A.2"),
    PublishedModel(
        name="ELECTRA-Base", parameters="110M", printed_train_flops=6.4e19,
        printed_inference_flops=2.9e10, **_electra("base"), source="ELECTRA, table 6"),
    PublishedModel(
        name="BERT-Large", parameters="335M", printed_train_flops=1.9e20,
        **_language_model(_shape(1024, 24), batch=256, steps=1e6),
        source="Devlin et al., 2019, appendix A.2"),
    PublishedModel(
        name="RoBERTa-100K", parameters="356M", printed_train_flops=6.4e20,
        **_language_model(_shape(1024, 24, vocabulary=50265), batch=8000, steps=100_000),
        source="Liu et al., 2019, table 4"),
    PublishedModel(
        name="ELECTRA-400K", parameters="335M", printed_train_flops=7.1e20, **_electra("large"),
        source="ELECTRA, table 6"),
    PublishedModel(
        name="ELECTRA-1.75M", parameters="335M", printed_train_flops=3.1e21,
        **_electra("large", 1.75e6), source="ELECTRA, section 3.4"),
    PublishedModel(
        name="RoBERTa-500K", parameters="356M", printed_train_flops=3.2e21,
        **_language_model(_shape(1024, 24, vocabulary=50265), batch=8000, steps=500_000),
        source="Liu et al., 2019, table 4"),
    PublishedModel(
        name="XLNet", parameters="360M", printed_train_flops=3.9e21,
        train_flops=2 * 500_000 * 8192 * _XLNET_FLOPS_PER_BATCH / _XLNET_BATCH,
        source="Yang et al., 2019: 500,000 steps of 8,192"),
    PublishedModel(
        name="ALBERT-xxlarge", parameters="235M", printed_train_flops=3.1e22,
        **_language_model(_shape(4096, 12, embedding=128, vocabulary=30000), batch=4096,
                          steps=1.5e6),
        source="Lan et al., 2020"),
    PublishedModel(
        name="T5-11B", parameters="11B", train_flops=_t5_train_flops(),
        source="Raffel et al., 2020: 1,000,000 steps of 2,048 x 512"),
)
"""Cheapest of a generation first."""
