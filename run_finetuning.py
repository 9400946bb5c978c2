r"""Fine-tunes a pre-trained ELECTRA on a task, scores it, and predicts with it.

    python run_finetuning.py --task=cola --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/cola
    python run_finetuning.py --task=glue --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/glue --num_trials=3
    python run_finetuning.py --task=classification --train=my.tsv --dev=my_dev.tsv \
        --text_columns=title,body --label_column=topic --init_checkpoint=runs/small \
        --model_dir=runs/topic
    python run_finetuning.py --mode=predict --model_dir=runs/topic --input=new.tsv \
        --output=topics.tsv
    python run_finetuning.py --mode=export --model_dir=runs/topic --export_dir=served/topic
    python run_finetuning.py --task=blimp --data_dir=blimp --init_checkpoint=runs/small \
        --model_dir=runs/blimp

The task decides the recipe: the paper's epochs and learning rate, unless a flag says otherwise.
The same command continues a run that was interrupted with the first trial that isn't finished.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from electra_tf import command_line, storage
from electra_tf.config import finetuning_flags, setting_flags
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import pretraining_config
from electra_tf.errors import UserError
from electra_tf.storage import Path

MODES = ("train", "eval", "predict", "export")
SHAPE = ("embedding_size", "hidden_size", "num_layers", "num_heads", "intermediate_size")
"""What `--model_size` says of an encoder."""
BLIMP_FLAGS = {"task", "mode", "data_dir", "init_checkpoint", "model_dir"}
"""What scoring without fine-tuning can use."""


def main() -> None:
    """Runs the mode that the flags ask for."""
    values = flags.FLAGS
    if values.mode not in MODES:
        raise UserError(f"--mode must be one of {', '.join(MODES)}. Received: {values.mode!r}")
    if values.data_source not in (finetuning_flags.FILES, finetuning_flags.TFDS):
        raise UserError(f"--data_source must be {finetuning_flags.FILES} or "
                        f"{finetuning_flags.TFDS}. Received: {values.data_source!r}")
    _require("model_dir")
    with setting_flags.naming_flags(finetuning_flags.SETTINGS):
        {"train": _train, "eval": _evaluate, "predict": _predict, "export": _export}[values.mode]()


def _train() -> None:
    values = flags.FLAGS
    for name in ("task", "init_checkpoint"):
        _require(name)
    from electra_tf.checkpoints import run_directory  # TensorFlow takes seconds to import.
    from electra_tf.finetuning import setup, trials
    from electra_tf.tasks import minimal_pairs, registry

    if list(values.task) == [minimal_pairs.NAME]:
        _score_minimal_pairs()
        return
    names = registry.resolved(values.task)
    model_dir = storage.path(values.model_dir)
    # What can't be exported is refused before hours of training.
    targets = _export_targets(names) if values.export_dir else []
    initial = _pretrained()
    if initial is None:
        model, text = _scratch()
    else:
        model, text = initial.model, initial.text
    changes = finetuning_flags.given_settings()
    begun = [name for name in changes if name.startswith("initialization.")]
    if begun and initial is not None:
        raise UserError(f"{begun[0]} is for an encoder that begins from scratch "
                        f"(--init_checkpoint=none); {initial.source} brings its weights.")
    # The recipe depends on the encoder's shape and on what is trained.
    model = override(PretrainingConfig(model=model), {
        setting: value for setting, value in changes.items()
        if setting.startswith("model.")}).model
    feature_based = override(FinetuningConfig(), {
        setting: value for setting, value in changes.items()
        if setting == "task.feature_based"}).task.feature_based
    runs = []
    for name in names:
        recipe = finetuning_config(name, model, feature_based=feature_based)
        config = override(recipe, changes)
        task = registry.load(name, _data_dir(), _own_files(),
                             from_tfds=values.data_source == finetuning_flags.TFDS)
        directory = model_dir / name if len(names) > 1 else model_dir
        runs.append((setup.prepare(config, task.spec, text, directory), task))
    if values.restart:
        for run, _ in runs:
            run_directory.restart(run.model_dir)
    results = [trials.train(run, task, initial) for run, task in runs]
    if len(results) > 1:
        trials.report_glue(model_dir, results)
    for (run, _), target in zip(runs, targets, strict=False):
        _export_run(run.model_dir, target, {})


def _score_minimal_pairs() -> None:
    """BLiMP has nothing to train on: the pre-trained networks are scored as they are."""
    _require("data_dir")
    own = {name for group in finetuning_flags.GROUPS.values() for name in group}
    more = sorted(name for name in own - BLIMP_FLAGS if flags.FLAGS[name].present)
    if more:
        raise UserError(f"--task=blimp trains nothing and knows no --{more[0]}; it takes "
                        "--data_dir, --init_checkpoint and --model_dir.")
    from electra_tf.checkpoints import formats
    from electra_tf.finetuning import minimal_pairs
    from electra_tf.finetuning.setup import SCRATCH
    from electra_tf.tasks.minimal_pairs import read_blimp

    if flags.FLAGS.init_checkpoint == SCRATCH:
        raise UserError("--task=blimp scores trained networks; --init_checkpoint must name them.")
    paradigms = read_blimp(_data_dir())
    networks = formats.read(storage.path(flags.FLAGS.init_checkpoint))
    minimal_pairs.score(networks, paradigms, storage.path(flags.FLAGS.model_dir))


def _evaluate() -> None:
    from electra_tf.finetuning import trials
    from electra_tf.tasks import registry

    run = _trained_run()
    asked = flags.FLAGS.task
    if asked and list(asked) != [run.spec.name]:
        raise UserError(f"--model_dir holds a model for --task={run.spec.name}. "
                        f"Received: --task={','.join(asked)}")
    trials.evaluate(run, registry.load_dev(
        run.spec, _data_dir(), _own_files(),
        from_tfds=flags.FLAGS.data_source == finetuning_flags.TFDS))


def _predict() -> None:
    for name in ("input", "output"):
        _require(name)
    from electra_tf.finetuning import trials

    trials.predict(_trained_run(), storage.path(flags.FLAGS.input),
                       storage.path(flags.FLAGS.output))


def _export() -> None:
    _require("export_dir")
    (target,) = _export_targets(["model"])
    _export_run(storage.path(flags.FLAGS.model_dir), target, finetuning_flags.given_settings())


def _export_targets(names: Sequence[str]):
    """Returns where the models of one or several tasks go."""
    from electra_tf.export.saved_model import Target

    values = flags.FLAGS
    directory = storage.path(values.export_dir)
    return [Target.of(directory / name if len(names) > 1 else directory, values.export_version,
                      values.serving_precision) for name in names]


def _export_run(model_dir: Path, target, changes: Mapping[str, Any]) -> None:
    from electra_tf.export import saved_model, servable
    from electra_tf.finetuning import setup, trials

    run = setup.prepare_trained(model_dir, dict(changes) | {
        "training.precision": "float32", "runtime.distribution_strategy": "one_device"})
    saved_model.export(servable.of_task(run.trained_model(), run.spec, run.config.task, run.text,
                                   trials.threshold_of(model_dir)), target)


def _trained_run():
    """Returns the run in --model_dir, with the runtime settings of the command line."""
    from electra_tf.finetuning import setup

    return setup.prepare_trained(
        storage.path(flags.FLAGS.model_dir), finetuning_flags.given_settings())


def _data_dir() -> Path | None:
    return storage.path(flags.FLAGS.data_dir) if flags.FLAGS.data_dir else None


def _own_files():
    from electra_tf.tasks.files import Columns
    from electra_tf.tasks.registry import Files

    values = flags.FLAGS
    columns = {"texts": tuple(values.text_columns or ()), "label": values.label_column,
               "key": values.key_column}
    paths = {split: storage.path(values[split].value) for split in ("train", "dev", "test")
             if values[split].value}
    return Files(columns=Columns(**{field: value for field, value in columns.items() if value}),
                 strict=values.strict, **paths)


def _pretrained():
    """Returns the encoder of --init_checkpoint, or None from scratch."""
    from electra_tf.checkpoints import formats
    from electra_tf.finetuning.setup import SCRATCH, require_same
    from electra_tf.text.vocabulary import Vocabulary

    values = flags.FLAGS
    if values.init_checkpoint == SCRATCH:
        return None
    initial = formats.read(storage.path(values.init_checkpoint))
    shape = {}
    if values.model_size:
        wanted = pretraining_config(values.model_size).model
        shape = {name: getattr(wanted, name) for name in SHAPE}
    require_same(initial, shape, Vocabulary.load(values.vocab_file).sha256
                 if values.vocab_file else None, f"--model_size={values.model_size}")
    for name in ("lower_case", "strip_accents"):
        if values[name].value not in (None, getattr(initial.text, name)):
            raise UserError(f"{initial.source} was trained with "
                            f"--{'' if getattr(initial.text, name) else 'no'}{name}; leave the "
                            "flag out.")
    return initial


def _scratch():
    """Returns shape and text settings of an encoder that is trained from scratch."""
    from electra_tf.checkpoints.pretrained import TextSettings
    from electra_tf.text.vocabulary import Vocabulary

    values = flags.FLAGS
    if not values.vocab_file:
        raise UserError("--vocab_file is needed with --init_checkpoint=none.")
    lower = True if values.lower_case is None else values.lower_case
    text = TextSettings(
        vocabulary=Vocabulary.load(values.vocab_file), lower_case=lower,
        strip_accents=lower if values.strip_accents is None else values.strip_accents)
    return pretraining_config(values.model_size or "small").model, text


def _require(name: str) -> None:
    if not flags.FLAGS[name].value:
        raise UserError(f"--{name} is needed: {flags.FLAGS[name].help}")


if __name__ == "__main__":
    finetuning_flags.define()
    command_line.run(main, summary=__doc__, groups=finetuning_flags.GROUPS)
