"""Runs this project's fine-tuning as `run_finetuning.py` does."""

import itertools
import pathlib

import tensorflow as tf

from benchmarks.harness.worker import Ready
from electra_tf.config.overrides import override
from electra_tf.data.buckets import make_batch, plan_epoch
from electra_tf.finetuning import setup
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.trials import compile_train_step
from electra_tf.formats import pretrained
from electra_tf.tasks import registry
from electra_tf.tasks.files import Files


def prepare(task: str, encoder: str, train: str, dev: str, max_seq_length: int, examples: int,
            batch: int, precision: str) -> Ready:
    """Returns turns of training and inference with an encoder and a new head."""
    initial = pretrained.read(pathlib.Path(encoder), encoder_only=True)
    config = override(registry.recipe(task, initial.model), {
        "task.max_seq_length": max_seq_length, "task.swap_pairs": False,
        "optimizer.layerwise_decay": 1.0, "training.train_batch_size": batch,
        "optimizer.bias_correction": True, "task.ends_given_starts": False,
        "runtime.eval_batch_size": batch, "training.precision": precision})
    files, directory = Files(), pathlib.Path(train).parent
    if task == "squad":
        files = Files(train=[pathlib.Path(train)], dev=[pathlib.Path(dev)])
    loaded = registry.load(task, directory, files)
    run = setup.prepare(config, loaded.spec, initial.text, pathlib.Path("unused"))
    model = run.build_model(1, initial)
    rows = run.encode(loaded.train[:examples]).rows
    lengths = [len(row.ids) for row in rows]
    padded_lengths = run.padded_lengths(rows, run.config.training.num_train_epochs)
    num_steps = 10_000 * len(rows)  # No benchmark reaches so many epochs.
    train_step = compile_train_step(run, model, num_steps=num_steps, seed=1)
    predictor, epochs = Predictor(run, model), itertools.count()

    def turn(what: str) -> dict[str, int]:
        if what == "infer":
            predictor.predict(rows)
            return {"rows": len(rows), "tokens": sum(lengths)}
        for indices in plan_epoch(lengths, batch, seed=1, epoch=next(epochs)):
            part = make_batch([rows[index] for index in indices], batch, padded_lengths,
                              run.text.vocabulary.pad_id)
            results = train_step(part.ids.shape, run.distributed(part))
        results["loss"].sum.numpy()  # Waits for the devices.
        return {"rows": len(rows), "tokens": sum(lengths)}

    return Ready(label=precision, versions={"TensorFlow": tf.__version__}, turn=turn)
