"""Worker: this project's fine-tuning, as `run_finetuning.py` runs it."""

import numpy as np
import tensorflow as tf

from benchmarks.finetuning import workload as plain
from benchmarks.finetuning.workload import Prepared, Workload, read_rows, serve
from electra_tf.config.overrides import override
from electra_tf.config.sizes import pretraining_config
from electra_tf.data.buckets import Row
from electra_tf.finetuning.finetuner import Finetuner, TrialSettings
from electra_tf.finetuning.predictor import Predictor
from electra_tf.tasks.kinds.classification import ClassificationObjective
from electra_tf.tasks.recipes import recipe
from electra_tf.training.cores import prepare_cpu
from electra_tf.training.devices import POLICIES
from electra_tf.training.strategies import create_strategy

_ENDLESS = 10_000
"""Epochs; nobody waits for the last."""


def prepare(workload: Workload) -> Prepared:
    """Builds model, optimizer and prediction."""
    ids, labels = read_rows(workload.rows)
    rows = [Row(one, np.zeros_like(one), {"label": np.int32(label)})
            for one, label in zip(ids, labels, strict=True)]
    config = recipe("sst2", pretraining_config("small").model)
    parts = prepare_cpu(config.runtime, workload.batch)
    config = override(config, {
        "runtime.cpu_parts": parts, "runtime.log_every_steps": _ENDLESS * len(rows),
        "runtime.log_every_seconds": 0,
        "runtime.eval_batch_size": workload.batch, "training.train_batch_size": workload.batch,
        "training.num_train_epochs": _ENDLESS, "training.precision": workload.precision})
    strategy = create_strategy(config.runtime)
    objective = ClassificationObjective(num_classes=plain.CLASSES)
    settings = TrialSettings(config=config, objective=objective, strategy=strategy,
                             pad_id=plain.PAD_ID)
    with strategy.scope():
        model = objective.build_model(config.model, seed=1,
                                      policy=POLICIES[config.training.precision])
    epochs = Finetuner(settings, model, rows, seed=1).epochs()
    predictor = Predictor(settings, model)
    return Prepared(
        label=workload.precision, versions={"TensorFlow": tf.__version__},
        turns={"train": lambda: next(epochs), "infer": lambda: predictor.predict(rows)})


if __name__ == "__main__":
    serve(prepare)
