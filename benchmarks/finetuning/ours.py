"""Runs this project's fine-tuning as `run_finetuning.py` does."""

import itertools
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.workload import PAD_ID
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import pretraining_config
from electra_tf.data.buckets import Row, make_batch, plan_epoch
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.finetuning.trials import compile_train_step
from electra_tf.tasks.glue import TASKS
from electra_tf.tasks.kinds.texts import ClassificationObjective
from electra_tf.tasks.registry import recipe
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from electra_tf.training.devices import POLICIES
from electra_tf.training.strategies import create_strategy, prepare_cpu


def prepare(ids: list[list[int]], labels: list[int], batch: int, workload: dict[str, Any],
            precision: str) -> Ready:
    """Returns turns of training and inference with a new ELECTRA-Small, the workload's model."""
    examples = [Row(np.array(row, np.int32), np.zeros(len(row), np.int32),
                    {"label": np.int32(label)}) for row, label in zip(ids, labels, strict=True)]
    config = recipe("sst2", pretraining_config("small").model)
    config = override(config, {
        "runtime.cpu_parts": prepare_cpu(config.runtime, batch), "runtime.eval_batch_size": batch,
        "training.train_batch_size": batch, "training.precision": precision})
    spec, strategy = TASKS["sst2"].spec, create_strategy(config.runtime)
    run = FinetuningRun(
        config=config, objective=ClassificationObjective(spec), strategy=strategy, spec=spec,
        text=TextSettings(vocabulary=Vocabulary(SPECIAL_TOKENS)), model_dir=pathlib.Path("unused"))
    assert run.text.vocabulary.pad_id == PAD_ID
    with strategy.scope():
        model = run.objective.build_model(config.model, seed=1,
                                          policy=POLICIES[config.training.precision])
    lengths, padded_lengths = [len(row.ids) for row in examples], run.padded_lengths(examples)
    num_steps = 10_000 * len(examples)  # No benchmark reaches so many epochs.
    train_step = compile_train_step(run, model, num_steps=num_steps, seed=1)
    predictor, epochs = Predictor(run, model), itertools.count()

    def turn(what: str) -> None:
        if what == "infer":
            predictor.predict(examples)
            return
        for indices in plan_epoch(lengths, batch, seed=1, epoch=next(epochs)):
            rows = make_batch([examples[index] for index in indices], batch, padded_lengths,
                              PAD_ID)
            results = train_step(rows.ids.shape, run.distributed(rows))
        results["loss"].sum.numpy()  # Waits for the devices.

    return Ready(label=precision, versions={"TensorFlow": tf.__version__}, turn=turn)
