"""The modes of the fine-tuning command, except for export.

Functions read `flags.FLAGS`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.checkpoints import formats, run_directory
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.config import finetuning_flags
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.model import ModelConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import pretraining_config
from electra_tf.finetuning import glue_average, outputs, pseudo_likelihood, setup, trials
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.section_flags import set_default
from electra_tf.platform.storage import Path
from electra_tf.tasks import registry, tfds_source
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.minimal_pairs import NAME, read_blimp
from electra_tf.tasks.recipes import recipe
from electra_tf.text.normalization import refuse_other
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import Vocabulary

SHAPE = ("embedding_size", "hidden_size", "num_layers", "num_heads", "intermediate_size")
"""Settings that `--model_size` decides."""
FROM_SCRATCH = "from_scratch"
"""Directory of the run that `--scratch_baseline` adds."""


def task_names() -> tuple[str, ...]:
    """Returns the tasks that `--task` stands for; `UserError` for unknown ones."""
    return registry.resolved(flags.FLAGS.task)


def train() -> list[FinetuningRun]:
    """Fine-tunes on every task and returns the runs."""
    values, changes = flags.FLAGS, finetuning_flags.given_settings()
    names, model_dir = task_names(), storage.path(values.model_dir)
    initial = _pretrained()
    model, text = _scratch() if initial is None else (initial.model, initial.text)
    begun = [name for name in changes if name.startswith("initialization.")]
    if initial is None and values.scratch_baseline:
        raise UserError("--scratch_baseline compares pre-trained weights with random ones; leave "
                        "it out with --init_checkpoint=none.")
    if begun and initial is not None:
        raise UserError(f"{begun[0]} is for an encoder that begins from scratch "
                        f"(--init_checkpoint=none); {initial.source} brings its weights.")
    runs, from_tfds = [], _from_tfds(names[0])  # Several names are all GLUE's.
    for name in names:
        task = registry.load(name, _data_dir(), _own_files(), from_tfds=from_tfds)
        directory = model_dir / name if len(names) > 1 else model_dir
        runs.append((setup.prepare(_config(name, model, changes), task.spec, text, directory),
                     task))
    if values.restart:
        for run, _ in runs:
            run_directory.restart(run.model_dir)
            run_directory.restart(run.model_dir / FROM_SCRATCH)
    results = []
    for run, task in runs:
        results.append(trials.train(run, task, initial))
        if values.scratch_baseline:
            print(f"\nthe same network from random weights: {run.model_dir / FROM_SCRATCH}")
            scratch = trials.train(dataclasses.replace(
                run, model_dir=run.model_dir / FROM_SCRATCH), task, None)
            print(f"\n{results[-1].beside(scratch)}")
    if len(results) > 1:
        print()
        glue_average.report(model_dir)
        glue_average.pack(model_dir, outputs.SUBMISSION)
    return [run for run, _ in runs]


def is_minimal_pairs() -> bool:
    """Tells whether `--task` names BLiMP, which has nothing to train on."""
    return list(flags.FLAGS.task) == [NAME]


def score_minimal_pairs() -> None:
    """Scores pre-trained networks as they are on BLiMP."""
    finetuning_flags.refuse_all_but(
        NAME, ("data_dir", "data_source", "init_checkpoint", "model_dir"))
    if flags.FLAGS.init_checkpoint == finetuning_flags.SCRATCH:
        raise UserError("--task=blimp scores trained networks; --init_checkpoint must name them.")
    paradigms = (tfds_source.read_blimp(_data_dir()) if _from_tfds(NAME)
                 else read_blimp(_data_dir()))
    networks = formats.read(storage.path(flags.FLAGS.init_checkpoint))
    pseudo_likelihood.score_pairs(networks, paradigms, storage.path(flags.FLAGS.model_dir))


def evaluate() -> None:
    """Scores the trained model of `--model_dir`."""
    run, asked = _trained_run(), flags.FLAGS.task
    if asked and list(asked) != [run.spec.name]:
        raise UserError(f"--model_dir holds a model for --task={run.spec.name}. "
                        f"Received: --task={','.join(asked)}")
    outputs.evaluate(run, registry.load_dev(
        run.spec, _data_dir(), _own_files(), from_tfds=_from_tfds(run.spec.name)))


def predict() -> None:
    """Predicts `--input` by the trained model of `--model_dir`."""
    values = flags.FLAGS
    outputs.predict(_trained_run(), values.input, values.output, overwrite=values.overwrite)


def _config(name: str, model: ModelConfig, changes: Mapping[str, Any]) -> FinetuningConfig:
    """Returns the recipe of a task and a shape, with the changes."""
    model = override(PretrainingConfig(model=model), {
        setting: value for setting, value in changes.items()
        if setting.startswith("model.")}).model
    return override(recipe(name, model), changes)


def _trained_run() -> FinetuningRun:
    """Returns the run in --model_dir, with the runtime settings of the command line."""
    return setup.prepare_trained(
        storage.path(flags.FLAGS.model_dir), finetuning_flags.given_settings())


def _data_dir() -> Path | None:
    return storage.path(flags.FLAGS.data_dir) if flags.FLAGS.data_dir else None


def _from_tfds(name: str) -> bool:
    """Returns if a task comes from TensorFlow Datasets: benchmarks do if no files are named."""
    values = flags.FLAGS
    files = any(values[split].value for split in ("data_dir", "train", "dev"))
    if not files and name not in set(Kind):
        set_default("data_source", "tfds")
    return values.data_source == "tfds"


def _own_files() -> Files:
    values = flags.FLAGS
    columns = {"texts": tuple(values.text_columns or ()), "label": values.label_column,
               "key": values.key_column}
    paths = {split: tuple(map(storage.path, values[split].value))
             for split in ("train", "dev", "test") if values[split].value}
    return Files(
        columns=Columns(**{field: value for field, value in columns.items() if value}),
        **paths)


def _pretrained() -> Pretrained | None:
    """Returns the encoder of --init_checkpoint, or None from scratch."""
    values = flags.FLAGS
    if values.init_checkpoint == finetuning_flags.SCRATCH:
        return None
    initial = formats.read(storage.path(values.init_checkpoint), generator=False)
    if values.model_size:
        wanted = pretraining_config(values.model_size).model
        for name in SHAPE:
            found, value = getattr(initial.model, name), getattr(wanted, name)
            if found != value:
                raise UserError(f"{initial.source} isn't --model_size={values.model_size}: its "
                                f"{name} is {found}, not {value}.")
    vocabulary = initial.text.vocabulary
    if values.vocab_file and Vocabulary.load(values.vocab_file).sha256 != vocabulary.sha256:
        raise UserError(f"--vocab_file isn't the vocabulary of {initial.source} "
                        f"({vocabulary.size} entries). Leave it out; the run's own is taken.")
    refuse_other(values, initial.text.normalization, initial.source)
    return initial


def _scratch() -> tuple[ModelConfig, TextSettings]:
    """Returns shape and text settings of an encoder that is trained from scratch."""
    values = flags.FLAGS
    return (pretraining_config(values.model_size or "small").model,
            TextSettings.of_flags(values))
