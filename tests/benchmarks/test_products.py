"""The products of a step, against a count by hand and against the program's own FLOPs."""

import pytest

from benchmarks.pretraining import cases
from benchmarks.pretraining.products import Product, run_all, step_flops, step_products
from benchmarks.pretraining.training_flops import product_flops_per_token
from tests.benchmarks.workloads import BY_HAND


def test_products_of_a_toy_are_those_counted_by_hand():
    # 2 x 8 tokens, 2 x 3 masked positions.
    assert [(product.rows, product.inputs, product.outputs, product.count)
            for product in step_products(BY_HAND)] == [
        (16, 6, 6, 8),  # Discriminator: query, key, value, output in 2 layers,
        (16, 6, 10, 2),  # feed-forward in
        (16, 10, 6, 2),  # and out,
        (16, 4, 6, 1),  # embeddings to hidden size,
        (16, 6, 6, 1),  # its head,
        (16, 6, 1, 1),
        (16, 4, 4, 4),  # Generator: one layer, no projection of the embeddings.
        (16, 4, 7, 1),
        (16, 7, 4, 1),
        (6, 4, 4, 1),  # Its head on the masked positions,
        (6, 4, 50, 1),  # and the vocabulary.
    ]


def test_flops_of_a_toy_are_those_counted_by_hand():
    # Multiplications per token: 8*36 + 2*2*60 + 24 + 36 + 6 = 594 and 4*16 + 2*28 = 120;
    # per masked position 16 + 200 = 216. Two FLOPs each, in three forms.
    assert step_flops(BY_HAND) == 3 * 2 * (16 * (594 + 120) + 6 * 216)


@pytest.mark.parametrize("name", cases.CASES)
def test_with_attention_they_are_what_the_program_counts(name):
    work = cases.workload_of(name, threads=1)
    attention = sum(3 * 4 * network.num_layers * network.hidden_size * work.length
                    for network in (work.discriminator, work.generator))
    assert step_flops(work) / work.tokens + attention == pytest.approx(
        product_flops_per_token(work), rel=1e-12)


@pytest.mark.parametrize(("count", "copies"), [(1, 1), (2, 2), (3, 3), (4, 4), (12, 4), (49, 1)])
def test_every_product_runs_as_often_as_the_step_needs_it(count, copies):
    product = Product(rows=1, inputs=1, outputs=1, count=count)
    calls = []
    run_all([(product, lambda: calls.append(product.copies))])
    assert product.copies == copies
    assert sum(calls) == count
