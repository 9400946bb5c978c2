"""Recipes are the paper's."""

import pytest

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.tasks.recipes import recipe


@pytest.mark.parametrize(("size", "rate", "decay"), [
    ("small", 3e-4, 0.8), ("base", 1e-4, 0.8), ("large", 5e-5, 0.9), ("tiny", 3e-4, 0.8)])
def test_rates_go_by_the_size_of_the_encoder(size, rate, decay):
    optimizer = recipe("sst2", SIZES[size].model).optimizer
    assert (optimizer.learning_rate, optimizer.layerwise_decay) == (rate, decay)
    assert not optimizer.layerwise_decay_skips_one


@pytest.mark.parametrize(("task", "epochs", "swaps", "length"), [
    ("cola", 3, False, 128), ("mrpc", 3, True, 128), ("rte", 10, False, 128),
    ("stsb", 10, True, 128), ("squad", 2, False, 512), ("chunk", 3, False, 128),
    ("searchqa", 2, False, 512), ("naturalqs", 2, False, 512)])
def test_epochs_and_lengths_go_by_the_task(task, epochs, swaps, length):
    config = recipe(task, SIZES["small"].model)
    assert config.training.num_train_epochs == epochs
    assert config.task.swap_pairs is swaps
    assert config.task.max_seq_length == length
    assert config.training.train_batch_size == 32


def test_questions_that_all_have_answers_need_no_head_for_those_without():
    names = ("squad2", "squad", "searchqa", "triviaqa", "newsqa", "naturalqs")
    heads = [recipe(name, SIZES["small"].model).task.answerability for name in names]
    assert heads == [True, False, False, False, False, False]


def test_an_encoder_of_few_positions_reads_short_rows():
    assert recipe("squad", SIZES["tiny"].model).task.max_seq_length == 128


def test_steps_cover_all_examples_and_a_tenth_of_them_warm_up():
    config = override(FinetuningConfig(), {"training.num_train_epochs": 2.5})
    assert config.num_train_steps(65) == 7  # 3 batches an epoch: 7.5 steps, as Google's code cuts.
    assert config.num_train_steps(1) == 2
    assert config.optimizer.warmup(1234) == pytest.approx(123.4)
    assert config.optimizer.warmup(7) == pytest.approx(0.7)
    assert override(config, {"optimizer.warmup_steps": 7}).optimizer.warmup(1234) == 7
