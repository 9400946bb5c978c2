"""The modes of the fine-tuning command. Functions read `flags.FLAGS`."""

import dataclasses

from absl import flags

from electra_tf.checkpoints import formats, run_directory
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.config import finetuning_flags
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig, pretraining_config
from electra_tf.finetuning import outputs, setup, trials
from electra_tf.finetuning.results import Results, glue_table
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_text import set_default
from electra_tf.platform.storage import Path
from electra_tf.tasks import glue, registry
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.files import Files
from electra_tf.text.tokenization import TextSettings, refuse_other
from electra_tf.text.vocabulary import Vocabulary

SHAPE = ("embedding_size", "hidden_size", "num_layers", "num_heads", "intermediate_size")
"""Settings that `--model_size` decides."""
FROM_SCRATCH = "from_scratch"
"""Directory of the run that `--scratch_baseline` adds."""


def train() -> None:
    """Fine-tunes on every task."""
    values, changes = flags.FLAGS, finetuning_flags.given_settings()
    names, model_dir = registry.resolved(values.task), storage.path(values.model_dir)
    initial = _pretrained()
    model, text = (initial.model, initial.text) if initial else (
        pretraining_config(values.model_size or "small").model, TextSettings.of_flags(values))
    shape = override(PretrainingConfig(model=model), {
        name: value for name, value in changes.items() if name.startswith("model.")}).model
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
        config = override(registry.recipe(name, shape), changes)
        runs.append((setup.prepare(config, task.spec, text, directory), task))
    if values.restart:
        for run, _ in runs:
            run_directory.restart(run.model_dir)
            run_directory.restart(run.model_dir / FROM_SCRATCH)
    for run, task in runs:
        results = trials.train(run, task, initial)
        if values.scratch_baseline:
            print(f"\nthe same network from random weights: {run.model_dir / FROM_SCRATCH}")
            scratch = trials.train(dataclasses.replace(
                run, model_dir=run.model_dir / FROM_SCRATCH), task, None)
            print(f"\n{results.beside(scratch)}")
    if len(runs) > 1:
        print("\n" + glue_table({name: found for name in glue.TASKS
                                 if (found := Results.load(model_dir / name))}))
        outputs.pack_submissions(model_dir)


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


MODES = {"train": train, "eval": evaluate, "predict": predict}


def _trained_run() -> FinetuningRun:
    """Returns the run in --model_dir, with the runtime settings of the command line."""
    return setup.prepare_trained(
        storage.path(flags.FLAGS.model_dir), finetuning_flags.given_settings())


def _data_dir() -> Path | None:
    return storage.path(flags.FLAGS.data_dir) if flags.FLAGS.data_dir else None


def _from_tfds(name: str) -> bool:
    """Tells if a task comes from TensorFlow Datasets: benchmarks do if no files are named."""
    values = flags.FLAGS
    files = any(values[split].value for split in ("data_dir", "train", "dev"))
    if not files and name not in set(Kind):
        set_default("data_source", "tfds")
    return values.data_source == "tfds"


def _own_files() -> Files:
    values = flags.FLAGS
    given = {split: tuple(map(storage.path, values[split].value or ()))
             for split in ("train", "dev", "test")} | {
        "texts": tuple(values.text_columns or ()), "label": values.label_column,
        "key": values.key_column}
    return Files(**{field: value for field, value in given.items() if value})


def _pretrained() -> Pretrained | None:
    """Returns the encoder of --init_checkpoint, or None from scratch."""
    values = flags.FLAGS
    if values.init_checkpoint == finetuning_flags.SCRATCH:
        return None
    initial = formats.read(storage.path(values.init_checkpoint), generator=False)
    wanted = pretraining_config(values.model_size).model if values.model_size else initial.model
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
