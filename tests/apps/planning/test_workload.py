"""What whole runs compute, by numbers from elsewhere and by hand."""

import pytest

from electra_tf.apps.planning.workload import PUBLISHED_LENGTHS, Workload
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.platform.errors import UserError


def work(size, **changes):
    config = override(SIZES[size], {name.replace("__", "."): value
                                    for name, value in changes.items()})
    return Workload.of(config, PUBLISHED_LENGTHS[size])


def test_steps_and_objectives_are_counted():
    whole, part = work("small"), work("small", training__num_train_steps=62_500)
    assert part.paper_flops == whole.paper_flops / 16
    assert part.matmul_flops == whole.matmul_flops / 16
    bert = work("small", objective__name="mlm", training__num_train_steps=1_450_000)
    assert bert.paper_flops == pytest.approx(1.4187399146496e18, rel=1e-12)
    assert bert.matmuls_per_token < whole.matmuls_per_token


def test_every_objective_is_counted_and_stages_cost_their_share():
    counted = {name: work("small", objective__name=name).matmuls_per_token
               for name in OBJECTIVES if name != "frozen_generator"}
    # Every objective that trains the encoder over all tokens costs three forward passes of it.
    encoder = 3 * work("small").inference(128)[1] / 128
    assert all(value > encoder for value in counted.values())
    # Half of two stages is a masked language model. The other half trains the discriminator,
    # which reads what a masked language model writes in a forward pass, a third of its step.
    second = counted["fixed_generator"] + counted["mlm"] / 3
    assert counted["two_stage"] == pytest.approx((counted["mlm"] + second) / 2)


@pytest.mark.parametrize(("changes", "length", "words"), [
    ({"objective.name": "frozen_generator"}, 128, "--set objective.generator=DIRECTORY"),
    ({}, 513, "--max_seq_length=513 is more than the model's 512 positions")])
def test_what_cant_be_counted_is_one_line(changes, length, words):
    with pytest.raises(UserError, match=words):
        Workload.of(override(SIZES["small"], changes), length)
    assert Workload.of(SIZES["small"], 512).tokens == 4 * work("small").tokens
