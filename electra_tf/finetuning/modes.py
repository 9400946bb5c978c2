"""Implements the modes of the fine-tuning command; functions read `flags.FLAGS`."""

import dataclasses
from typing import Any

from absl import flags

from electra_tf.checkpoints import run_directory
from electra_tf.config.finetuning import SCRATCH
from electra_tf.config.overrides import Changes, override
from electra_tf.config.pretraining import PretrainingConfig, pretraining_config
from electra_tf.finetuning import distillation, outputs, setup, trials
from electra_tf.finetuning.results import Results, glue_table
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Pretrained
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_flags import set_default
from electra_tf.tasks import glue, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import Kind
from electra_tf.text.tokenization import text_settings_from_flags

SCRATCH_RUN = "from_scratch"
"""Directory of the run that `--scratch_baseline` adds."""


def train(changes: Changes) -> None:
    """Fine-tunes on every task."""
    values = flags.FLAGS
    names, model_dir = registry.resolve(values.task), storage.path(values.model_dir)
    unused = ["--unlabelled"] * values["unlabelled"].present + [
        name for name in changes if "distillation_" in name]
    if unused and not values.teacher:
        raise UserError(f"{unused[0]} needs --teacher, the fine-tuned model to learn from.")
    initial: Pretrained | None = None
    if values.init_checkpoint == SCRATCH:
        if values.scratch_baseline:
            raise UserError("--scratch_baseline compares pre-trained weights with random ones; "
                            "leave it out with --init_checkpoint=none.")
        model = pretraining_config(values.model_size or "small").model
        text = text_settings_from_flags(values)
    else:
        initial = pretrained.read(storage.path(values.init_checkpoint), encoder_only=True)
        model, text = initial.model, initial.text
        unused = [f"--{name}" for name in ("model_size", "vocab_file", "normalization")
                  if values[name].present]
        unused += [name for name in changes if name.startswith("initialization.")]
        if unused:
            raise UserError(f"{unused[0]} is for an encoder that begins from scratch "
                            f"(--init_checkpoint=none); {initial.source} has its own. "
                            "Leave it out.")
    shape = override(PretrainingConfig(model=model), {
        name: value for name, value in changes.items() if name.startswith("model.")}).model
    runs, data = [], _data(names[0])  # GLUE's tasks, which can share a run, share their data.
    for name in names:
        task = registry.load(name, **data)
        directory = model_dir / name if len(names) > 1 else model_dir
        config = override(registry.recipe(name, shape), changes)
        run = setup.prepare(config, task.spec, text, directory)
        run.check_training()  # Before it removes an earlier run.
        if values.teacher:
            run = distillation.with_teacher(run, storage.path(values.teacher))
            task = distillation.with_unlabelled(task, data["own"])
        runs.append((run, task))
    if values.restart:
        for run, _ in runs:
            run_directory.restart(run.model_dir)
            run_directory.restart(run.model_dir / SCRATCH_RUN)
    for run, task in runs:
        results = trials.train(run, task, initial)
        if values.scratch_baseline:
            print(f"\nthe same network from random weights: {run.model_dir / SCRATCH_RUN}")
            scratch = trials.train(dataclasses.replace(
                run, model_dir=run.model_dir / SCRATCH_RUN), task, None)
            print(f"\n{results.beside(scratch)}")
    if len(runs) > 1:
        print("\n" + glue_table({name: results for name in glue.TASKS
                                 if (results := Results.load(model_dir / name))}))
        outputs.pack_submissions(model_dir)


def evaluate(changes: Changes) -> None:
    """Scores the trained model of `--model_dir`."""
    names = flags.FLAGS.task
    run = setup.prepare_trained(storage.path(flags.FLAGS.model_dir), changes)
    if names and list(names) != [run.spec.name]:
        raise UserError(f"--model_dir holds a model for --task={run.spec.name}. "
                        f"Received: --task={','.join(names)}")
    outputs.evaluate(run, registry.load_dev(run.spec, **_data(run.spec.name)))


def predict(changes: Changes) -> None:
    """Writes the predictions of the trained model of `--model_dir` for `--input`."""
    values = flags.FLAGS
    run = setup.prepare_trained(storage.path(values.model_dir), changes)
    outputs.predict(run, values.input, values.output, _own_files(), overwrite=values.overwrite)


MODES = {"train": train, "eval": evaluate, "predict": predict}


def _data(name: str) -> dict[str, Any]:
    """Returns arguments of `registry.load`; TensorFlow Datasets is the default of benchmarks."""
    values = flags.FLAGS
    if not (values.data_dir or values.train or values.dev) and name not in set(Kind):
        set_default("data_source", "tfds")
    return {"data_dir": storage.path(values.data_dir) if values.data_dir else None,
            "own": _own_files(), "from_tfds": values.data_source == "tfds"}


def _own_files() -> Files:
    values = flags.FLAGS
    return Files(texts=tuple(values.text_columns or ()), label=values.label_column,
                 key=values.key_column, dev_texts=tuple(values.dev_text_columns or ()), **{
                     split: tuple(map(storage.path, values[split].value or ()))
                     for split in ("train", "dev", "test", "unlabelled")})
