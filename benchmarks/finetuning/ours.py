"""Runs this project's fine-tuning as `run_finetuning.py` does."""

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.harness.worker import Ready, serve
from benchmarks.pretraining.workload import PAD_ID
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import pretraining_config
from electra_tf.data.buckets import Row
from electra_tf.finetuning.finetuner import Finetuner, TrialSettings
from electra_tf.finetuning.predictor import Predictor
from electra_tf.tasks.glue import TASKS
from electra_tf.tasks.kinds.texts import ClassificationObjective
from electra_tf.tasks.registry import recipe
from electra_tf.training.devices import POLICIES, create_strategy, prepare_cpu

_ENDLESS = 10_000
"""Number of epochs that no benchmark reaches."""


def prepare(ids: list[list[int]], labels: list[int], batch: int, workload: dict[str, Any],
            precision: str) -> Ready:
    """Returns turns of training and inference with a new ELECTRA-Small, the workload's model."""
    examples = [Row(np.array(row, np.int32), np.zeros(len(row), np.int32),
                    {"label": np.int32(label)}) for row, label in zip(ids, labels, strict=True)]
    config = recipe("sst2", pretraining_config("small").model)
    config = override(config, {
        "runtime.cpu_parts": prepare_cpu(config.runtime, batch),
        "runtime.log_every_steps": _ENDLESS * len(examples), "runtime.log_every_seconds": 0,
        "runtime.eval_batch_size": batch, "training.train_batch_size": batch,
        "training.num_train_epochs": _ENDLESS, "training.precision": precision})
    strategy = create_strategy(config.runtime)
    objective = ClassificationObjective(TASKS["sst2"].spec)
    settings = TrialSettings(config=config, objective=objective, strategy=strategy, pad_id=PAD_ID)
    with strategy.scope():
        model = objective.build_model(config.model, seed=1,
                                      policy=POLICIES[config.training.precision])
    epochs = Finetuner(settings, model, examples, seed=1).epochs()
    predictor = Predictor(settings, model)

    def turn(what: str) -> None:
        next(epochs) if what == "train" else predictor.predict(examples)

    return Ready(label=precision, versions={"TensorFlow": tf.__version__}, turn=turn)


if __name__ == "__main__":
    serve(prepare)
