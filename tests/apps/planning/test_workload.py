"""What whole runs compute, by numbers from elsewhere and by hand."""

import pytest

from electra_tf.apps.planning.workload import (
    PUBLISHED_LENGTHS,
    Workload,
    matmul_inference_flops,
    paper_inference_flops,
)
from electra_tf.config.overrides import override
from electra_tf.config.sizes import SIZES
from electra_tf.modeling.flops import EncoderShape, paper_block_flops
from electra_tf.platform.errors import UserError


def work(size, **changes):
    config = override(SIZES[size], {name.replace("__", "."): value
                                    for name, value in changes.items()})
    return Workload.of(config, PUBLISHED_LENGTHS[size])


@pytest.mark.parametrize(("size", "flops", "tokens"), [
    ("small", 1.293743798272e18, 16.384e9), ("base", 6.424541834277683e19, 100.401152e9),
    ("large", 7.117606040895488e20, 419.4304e9)])
def test_the_defaults_are_the_published_runs(size, flops, tokens):
    assert work(size).paper_flops == pytest.approx(flops, rel=1e-12)
    assert work(size).tokens == tokens


def test_bert_of_smalls_shape_is_bert_small():
    bert = work("small", objective__name="mlm", training__num_train_steps=1_450_000)
    assert bert.paper_flops == pytest.approx(1.4187399146496e18, rel=1e-12)
    assert bert.products_per_token < work("small").products_per_token


def test_a_sixteenth_of_the_steps_is_a_sixteenth_of_everything():
    whole, part = work("small"), work("small", training__num_train_steps=62_500)
    assert part.paper_flops == whole.paper_flops / 16
    assert part.products_flops == whole.products_flops / 16


def test_products_are_those_that_the_run_itself_counts():
    from electra_tf.objectives.electra import ElectraObjective

    counted = ElectraObjective.flops_per_token(
        type("Run", (), {"config": SIZES["large"]})(), 512)
    assert work("large").products_per_token == counted


@pytest.mark.parametrize(("size", "printed"), [("small", 3.7e9), ("base", 2.9e10)])
def test_an_answer_costs_what_the_paper_prints(size, printed):
    assert float(f"{paper_inference_flops(work(size).encoder, 128):.1e}") == printed


def test_products_of_an_answer_by_hand():
    shape = EncoderShape(hidden_size=2, num_layers=1, num_heads=1, intermediate_size=4,
                         embedding_size=2, vocab_size=5)
    # 4 x 2 x 2 weights of attention and 2 x 2 x 4 of the feed-forward layer, two operations each,
    # scores and sums 4 x 2 x 3; all for three tokens.
    assert matmul_inference_flops(shape, 3) == 3 * (2 * (16 + 16) + 24)


def test_a_wider_projection_and_a_second_attention_by_hand():
    shape = EncoderShape(hidden_size=2, num_layers=1, num_heads=1, intermediate_size=4,
                         embedding_size=2)
    plain = paper_block_flops(shape, 3)
    # Queries, keys and values of two units more: 3 (2 x 2 + 1) 2; their scores 2 x 2 x 3.
    assert paper_block_flops(shape, 3, projected_size=4) - plain == 3 * (30 + 12)
    # Once more projections 3 x 5 x 2, products 4 x 2 x 3, 10 for each of three scores, output
    # 5 x 2, dropout and sum 5 x 2, layer norm 5.
    assert paper_block_flops(shape, 3, attentions=2) - plain == 3 * (30 + 24 + 30 + 10 + 10 + 5)


@pytest.mark.parametrize(("changes", "length", "words"), [
    ({"objective.name": "two_stage"}, 128, "objective.name=two_stage isn't counted"),
    ({}, 513, "--max_seq_length=513 is more than the model's 512 positions")])
def test_what_is_not_counted_is_one_line(changes, length, words):
    with pytest.raises(UserError, match=words):
        Workload.of(override(SIZES["small"], changes), length)


def test_examples_may_be_as_long_as_the_positions():
    assert Workload.of(SIZES["small"], 512).sequence_length == 512
