"""Implements the modes of the fine-tuning command; functions read `flags.FLAGS`."""

import dataclasses
from typing import Any

from absl import flags

from electra_tf.checkpoints import run_directory
from electra_tf.config.finetuning import SCRATCH, FinetuningConfig
from electra_tf.config.model import MODEL_SIZES, InitializationConfig
from electra_tf.config.overrides import Changes, override, override_section, setting_of
from electra_tf.core import hub, storage
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError
from electra_tf.core.setting_flags import print_default
from electra_tf.core.settings import require_one_of
from electra_tf.finetuning import loop, outputs
from electra_tf.finetuning.predict import TaskPredictor, predict_file
from electra_tf.finetuning.results import Results, glue_table, median_table, score_table
from electra_tf.finetuning.run import FinetuningRun, prepare_trained
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint, Format
from electra_tf.tasks import glue, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import Kind
from electra_tf.text.normalization import text_settings_from_flags

SCRATCH_RUNS = {
    "from scratch, encoder's initialization": "from_scratch_encoder_initialization",
    "from scratch, normal initialization": "from_scratch_normal_initialization"}
"""Runs that `--scratch_baseline` adds, and their directories within `--model_dir`."""


def train(changes: Changes) -> None:
    """Fine-tunes on every task."""
    values = flags.FLAGS
    # The encoder: random weights of a size, or those of a checkpoint, which decides the rest.
    names, model_dir = registry.resolve(values.task), storage.utf8_path(values.model_dir)
    initial: Checkpoint | None = None
    if values.init_checkpoint == SCRATCH:
        if values.scratch_baseline:
            raise UserError("--scratch_baseline compares pre-trained weights with initial ones; "
                            "leave it out with --init_checkpoint=none.")
        size = values.model_size or "small"
        require_one_of(MODEL_SIZES, "--model_size", size)
        model = MODEL_SIZES[size]
        text = text_settings_from_flags(values)
    else:
        initial = pretrained.read(storage.path(values.init_checkpoint), encoder_only=True)
        model, text = initial.config, initial.text
        unused = [f"--{name}" for name in ("model_size", "vocab_file", "normalization")
                  if values[name].present]
        unused += [name for name in changes if name.startswith("initialization.")]
        if unused:
            raise UserError(f"{unused[0]} is for random initial weights (--init_checkpoint=none); "
                            f"{initial.source} already decides it. Leave {unused[0]} out.")

    # Settings with several values are a grid; the first of each decides the shape.
    grid = {name: value for name, value in changes.items() if isinstance(value, tuple)
            and setting_of(FinetuningConfig(), name).kind is not tuple}
    FinetuningConfig.require_tunable(grid)
    changes = {**changes, **{name: values[0] for name, values in grid.items()}}
    shape = override_section(model, changes)

    # All tasks and runs are checked before the first is trained or an earlier one is removed.
    runs = []
    for name in names:
        config = override(registry.recipe(name, shape), changes)
        task = registry.load(name, **_data(name, config.training.num_folds))
        directory = model_dir / name if len(names) > 1 else model_dir
        run = loop.prepare(config, task, text, directory, grid,
                           storage.path(values.teacher) if values["teacher"].present else None)
        runs.append((run, task, scratch_runs(run) if values.scratch_baseline else {}))
    if values.restart:
        earlier = [run.model_dir / name for run, _, _ in runs
                   for name in ("", *SCRATCH_RUNS.values())]
        run_directory.confirm_restart(earlier, ask=not values.yes)
        for directory in earlier:
            run_directory.restart(directory)

    # The runs, each with its controls from scratch.
    for run, task, baselines in runs:
        results = {"pre-trained": loop.train(run, task, initial)}
        for name, baseline in baselines.items():
            print(f"\nthe same network {name}: {baseline.model_dir}")
            results[name] = loop.train(baseline, task, None)
        if baselines:
            print(f"\n{median_table(results)}")
    if len(runs) > 1:
        print("\n" + glue_table({name: results for name in glue.TASKS
                                 if (results := Results.load(model_dir / name))}))
        outputs.pack_submissions(model_dir)


def scratch_runs(run: FinetuningRun) -> dict[str, FinetuningRun]:
    """Returns `SCRATCH_RUNS`; that with the encoder's initialization only if it is not normal."""
    source, normal = storage.path(flags.FLAGS.init_checkpoint), InitializationConfig.normal()
    known = {} if hub.is_model_name(source) else Format.RUN.module.initialization(source)
    settings = dict(zip(SCRATCH_RUNS, (known, normal), strict=True))
    return {name: dataclasses.replace(run, model_dir=run.model_dir / directory,
                                      config=override(run.config, settings[name]))
            for name, directory in SCRATCH_RUNS.items()
            if settings[name] is normal or settings[name] not in ({}, normal)}


def evaluate(changes: Changes) -> None:
    """Scores the trained model of `--model_dir` on the splits for dev, and saves the scores."""
    run = _trained_run(changes)
    task = registry.load_dev(run.spec, **_data(run.spec.name))
    for note in task.notes:
        print(f"note     {note}", flush=True)
    predictor, path, scores = TaskPredictor(run), run.model_dir / run_directory.EVALUATION_FILE, {}
    for name, examples in task.dev.items():
        split = run.encode(examples)
        records, scores[name] = predictor.scored(split)
        constant, baseline = run.kind.baseline(run.spec, examples, examples)
        print(score_table(f"{run.spec.name}, {name}: {len(examples):,} examples", scores[name],
                          {"score": scores[name], "baseline": baseline},
                          [f"baseline: {constant}", *split.notes])
              + outputs.mistakes(run.spec, records, name), flush=True)
    write_json(path, scores)
    print(f"results  {path}")


def predict(changes: Changes) -> None:
    """Writes the predictions of the trained model of `--model_dir` for `--input`."""
    values = flags.FLAGS
    predict_file(_trained_run(changes), values.input, values.output, _user_files(),
                 overwrite=values.overwrite)


def _trained_run(changes: Changes) -> FinetuningRun:
    """Returns the run of `--model_dir`; `UserError` if its task is not that of `--task`."""
    names = flags.FLAGS.task
    run = prepare_trained(storage.path(flags.FLAGS.model_dir), changes)
    if names and list(names) != [run.spec.name]:
        raise UserError(f"--model_dir holds a model for --task={run.spec.name}. "
                        f"Received: --task={','.join(names)}")
    return run


def _data(name: str, num_folds: int = 0) -> dict[str, Any]:
    """Returns arguments of `registry.load`; TensorFlow Datasets is the default of benchmarks."""
    values = flags.FLAGS
    if not (values.data_dir or values.train or values.dev) and name not in set(Kind):
        values.set_default("data_source", "tfds")
        print_default("data_source")
    return {"data_dir": storage.path(values.data_dir) if values.data_dir else None,
            "user_files": _user_files(num_folds), "from_tfds": values.data_source == "tfds"}


def _user_files(num_folds: int = 0) -> Files:
    values = flags.FLAGS
    files = {split: tuple(map(storage.path, values[split].value or ()))
             for split in ("train", "dev", "test", "unlabelled")}
    return Files(**files, num_folds=num_folds, text_columns=tuple(values.text_columns or ()),
                 dev_text_columns=tuple(values.dev_text_columns or ()),
                 label_column=values.label_column, key_column=values.key_column)
