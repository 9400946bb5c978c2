"""Worker: this project's fine-tuning, as `run_finetuning.py` runs it."""

import numpy as np
import tensorflow as tf

from benchmarks.finetuning import rows as plain
from benchmarks.harness.worker import Ready, serve
from electra_tf.config.overrides import override
from electra_tf.config.sizes import pretraining_config
from electra_tf.data.buckets import Row
from electra_tf.finetuning.finetuner import Finetuner, TrialSettings
from electra_tf.finetuning.predictor import Predictor
from electra_tf.tasks.kinds.texts import ClassificationObjective
from electra_tf.tasks.recipes import recipe
from electra_tf.training.devices import POLICIES, prepare_cpu
from electra_tf.training.strategies import create_strategy

_ENDLESS = 10_000
"""Epochs; nobody waits for the last."""


def prepare(rows: str, batch: int, threads: int, precision: str) -> Ready:
    """Builds model, optimizer and prediction."""
    ids, labels = plain.read(rows)
    examples = [Row(one, np.zeros_like(one), {"label": np.int32(label)})
                for one, label in zip(ids, labels, strict=True)]
    config = recipe("sst2", pretraining_config("small").model)
    parts = prepare_cpu(config.runtime, batch)
    config = override(config, {
        "runtime.cpu_parts": parts, "runtime.log_every_steps": _ENDLESS * len(examples),
        "runtime.log_every_seconds": 0,
        "runtime.eval_batch_size": batch, "training.train_batch_size": batch,
        "training.num_train_epochs": _ENDLESS, "training.precision": precision})
    strategy = create_strategy(config.runtime)
    objective = ClassificationObjective(outputs=plain.CLASSES)
    settings = TrialSettings(config=config, objective=objective, strategy=strategy,
                             pad_id=plain.PAD_ID)
    with strategy.scope():
        model = objective.build_model(config.model, seed=1,
                                      policy=POLICIES[config.training.precision])
    epochs = Finetuner(settings, model, examples, seed=1).epochs()
    predictor = Predictor(settings, model)
    turns = {"train": lambda: next(epochs), "infer": lambda: predictor.predict(examples)}

    def turn(what: str) -> None:
        turns[what]()

    return Ready(label=precision, versions={"TensorFlow": tf.__version__}, turn=turn)


if __name__ == "__main__":
    serve(prepare)
