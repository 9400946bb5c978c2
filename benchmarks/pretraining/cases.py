"""Defines the cases by name, from the program's own settings."""

import collections
import re

from benchmarks.pretraining.system import LEARNING_RATE, Workload
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES, PretrainingConfig, pretraining_config
from electra_tf.core.errors import UserError
from electra_tf.core.machine import usable_cores
from electra_tf.modeling import specs
from electra_tf.modeling.flops import matmul_flops_per_token

CASES = {"small-128": "small-32x128", "small-512": "small-8x512", "base-128": "base-8x128"}
"""The default cases."""
OTHER_CASES = "SIZE-BxL, such as base-8x512, or SIZE-BxL-recompute with gradient checkpointing"
# Tests the benchmark itself; too small to compare systems.
TOY = {"model.vocab_size": 1000, "model.embedding_size": 16, "model.hidden_size": 32,
       "model.intermediate_size": 64, "model.hidden_dropout": 0.1, "model.attention_dropout": 0.1}


def config_of(name: str, precision: str = "float32", compiler: str = "off") -> PretrainingConfig:
    """Returns the settings of this project's run in a case; `UserError` if there is none."""
    match = re.fullmatch(rf"({'|'.join(SIZES)})-([1-9]\d*)x([1-9]\d*)(-recompute)?",
                         "tiny-2x16" if name == "toy" else CASES.get(name, name))
    if not match:
        raise UserError(f"no case is named {name!r}. There are {', '.join(CASES)}, toy, and "
                        f"{OTHER_CASES}.")
    size, batch, length, recompute = match.groups()
    return override(pretraining_config(size), (TOY if name == "toy" else {}) | {
        "model.max_position_embeddings": max(512, int(length)),
        "data.max_seq_length": int(length), "training.train_batch_size": int(batch),
        "training.precision": precision, "runtime.xla": compiler,
        "runtime.gradient_checkpointing": bool(recompute),
        # As in the baselines: in the paper's warm-up, the first step has a learning rate of 0.
        "optimizer.learning_rate": LEARNING_RATE, "optimizer.warmup_steps": 0})


def workload_of(name: str) -> Workload:
    """Returns the numbers of a case, on all cores."""
    config = config_of(name)
    batch, length = config.training.train_batch_size, config.data.max_seq_length
    predictions = config.masking.max_predictions(length)
    networks = specs.discriminator(config.model.discriminator), specs.generator(config.model)
    # Kernels run at all positions; the generator's head and the word table at masked ones.
    matmuls: collections.Counter[tuple[int, ...]] = collections.Counter()
    for network in networks:
        (head,) = network.heads
        rows = batch * (predictions if head.scores_vocabulary else length)
        for count, weights in ((batch * length, network.body), (rows, head.weights)):
            matmuls.update((count, *shape) for path, shape in weights.items()
                           if path.endswith("/kernel"))
        if head.scores_vocabulary:
            matmuls[rows, network.encoder.embedding_size, network.encoder.vocab_size] += 1
    return Workload(
        case=name, batch=batch, length=length, threads=usable_cores(), predictions=predictions,
        discriminator=config.model.discriminator, generator=config.model.generator,
        token_flops=matmul_flops_per_token(networks, length, predictions),
        matmuls=[(*shape, count) for shape, count in matmuls.items()])
