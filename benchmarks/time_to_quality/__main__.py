r"""Compares the AUC over training time with Hugging Face.

    make time-to-quality TIME_FLAGS='--data_dir=records'
    python -m benchmarks.time_to_quality --data_dir=records --num_train_steps=20000 --systems=hf

Each system trains alone on all cores, on the same examples in the same order, and is scored on the
same held-out examples. Prints the seconds to each AUC; writes time_to_quality.md, .json and .png.
benchmarks/README.md lists what is equal and what is not.
"""

import dataclasses
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from absl import flags

from benchmarks.harness import command, tables
from benchmarks.harness.turns import BenchmarkCase, Role, system
from benchmarks.pretraining.cases import encoder_sizes
from benchmarks.pretraining.workload import DROPOUT, Workload
from electra_tf.config import overrides
from electra_tf.config.pretraining import PretrainingConfig, resolve
from electra_tf.data import manifest
from electra_tf.platform import storage
from electra_tf.platform.machine import usable_cores
from electra_tf.reporting import plots
from electra_tf.text.vocabulary import Vocabulary

GOALS = (0.60, 0.65, 0.70, 0.75)
"""AUCs whose times are compared."""
PAPER_LEARNING_RATE = 5e-4
"""ELECTRA-Small's learning rate, the highest in the paper; the networks here are narrower."""
EVALUATIONS, EVAL_BATCHES = 40, 20
"""Evaluations of a run, and the held-out batches of each."""
_MAX_BYTES = 1 << 30
"""Size of the examples that are written for the baseline; a longer run repeats them."""
SYSTEMS = (
    *(system(recipe, "time_to_quality.ours", title=f"electra_tf, recipe {recipe}")
      for recipe in ("short", "paper")),
    system("hf", "time_to_quality.hugging_face",
           title="Hugging Face in PyTorch, the paper's settings"))


def main() -> None:
    """Runs one system after the other, and prints and writes table and picture."""
    values = flags.FLAGS
    bench = command.Bench(SYSTEMS)
    length = manifest.load(storage.path(values.data_dir)).max_seq_length
    with tempfile.TemporaryDirectory() as scratch:
        for index, system in enumerate(bench.systems):
            if system.role is Role.OURS:
                settings = {"tokens_per_step": values.train_batch_size * length, "run_flags": [
                    f"--data_dir={pathlib.Path(values.data_dir).absolute()}",
                    "--precision=float32", f"--model_size={values.model_size}",
                    f"--recipe={system.name}", f"--eval_steps={EVAL_BATCHES}",
                    *(f"--set={name}={value}" for name, value in changes(system.name).items())]}
            else:
                settings = baseline_request(pathlib.Path(scratch), length)
            bench.systems[index] = dataclasses.replace(system, settings=settings)
        measured = bench.measure(BenchmarkCase(
            name="time to quality", turns={"train": {}}, rounds=1, fields={
                "steps": values.num_train_steps,
                "every": -(-values.num_train_steps // EVALUATIONS)}), alone=True)
    curves = [sum(result.values("train", "points"), []) for result in measured]
    table = tables.table(measured, [
        *([f"{goal:.2f}", *(tables.ratio(seconds_to(points, goal), 1, ",.0f")
                            for points in curves)] for goal in GOALS),
        ["whole run", *(f"{points[-1][0]:,.0f}" if points else "-" for points in curves)],
        ["last AUC", *(f"{points[-1][1]:.3f}" if points else "-" for points in curves)]])
    path = bench.save(
        "time_to_quality", f"{values.num_train_steps:,} steps", measured,
        ["Seconds until the discriminator's AUC stays at a goal.", "", *table], {})
    figure, (axes,) = plots.figure(1, 1, (8, 4.6))
    for result, points, color in zip(measured, curves, plots.COLORS, strict=False):
        if points:
            axes.plot(*zip(*points, strict=True), "o-", markersize=3, color=color,
                      label=result.label)
    axes.set_xscale("log")
    plots.style_axes(axes, x="seconds of training", y="AUC of the discriminator, held out")
    figure.legend(frameon=False, fontsize=8, loc="outside upper left", ncols=2)
    plots.save(figure, path.with_suffix(".png"))


def changes(recipe: str) -> dict[str, Any]:
    """Returns the settings of our run; "paper" has the paper's learning rate and dropout."""
    shared = overrides.given_settings({}) | {
        "training.train_batch_size": flags.FLAGS.train_batch_size}
    if recipe == "paper":
        shared |= {"optimizer.learning_rate": PAPER_LEARNING_RATE, "optimizer.warmup_steps": -1,
                   "model.hidden_dropout": DROPOUT, "model.attention_dropout": DROPOUT}
    return shared


def baseline_request(directory: pathlib.Path, length: int) -> dict[str, Any]:
    """Writes the examples of our run; returns the fields of the baseline's first request."""
    config = resolve(flags.FLAGS.model_size, "paper", changes("paper"))
    records = pathlib.Path(flags.FLAGS.data_dir)
    vocabulary = Vocabulary.load(storage.path(records) / manifest.VOCABULARY_NAME)
    batch = config.training.train_batch_size
    export(records, directory, config, pad_id=vocabulary.pad_id,
           steps=min(flags.FLAGS.num_train_steps, _MAX_BYTES // (4 * batch * length)))
    work = Workload(
        case="time to quality", batch=batch, length=length, threads=usable_cores(),
        predictions=config.masking.max_predictions(length), vocab_size=vocabulary.size,
        discriminator=encoder_sizes(config.model.discriminator),
        generator=encoder_sizes(config.model.generator), mask_id=vocabulary.mask_id,
        special_ids=(vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id))
    return {"directory": str(directory), "workload": dataclasses.asdict(work),
            "learning_rate": PAPER_LEARNING_RATE, "seed": config.training.seed}


def export(records: pathlib.Path, target: pathlib.Path, config: PretrainingConfig, *, pad_id: int,
           steps: int) -> None:
    """Writes train.npy, int32 [steps, B, L], and held_out.npz: ids int32, valid bool [E, B, L]."""
    import numpy as np
    import tensorflow as tf

    from electra_tf.data.pipeline import evaluation_batches, training_batches

    source, context = manifest.load_records(records), tf.distribute.InputContext()
    train = training_batches(
        source, pad_id=pad_id, seed=config.training.seed,
        buffer_examples=config.data.shuffle_buffer, first_step=0, last_step=steps,
        global_batch_size=config.training.train_batch_size, input_context=context)
    held_out = list(evaluation_batches(
        source, pad_id=pad_id, global_batch_size=config.runtime.eval_batch_size,
        input_context=context).take(EVAL_BATCHES).as_numpy_iterator())
    np.save(target / "train.npy", np.stack([rows.ids for rows in train.as_numpy_iterator()]))
    np.savez(target / "held_out.npz", ids=np.stack([rows.ids for rows in held_out]),
             valid=np.stack([rows.valid for rows in held_out]))


def seconds_to(points: Sequence[tuple[float, float]], goal: float) -> float | None:
    """Returns the seconds from which the AUC stays at `goal`, above 0.5; None if it does not.

    In its first steps, a generator draws all words with similar probability, which any
    discriminator detects. The AUC then falls again, so its first crossing does not count. It is
    interpolated linearly between evaluations, from 0.50 at 0 s.
    """
    curve = [(0.0, 0.5), *points]
    last_below = max(index for index, (_, auc) in enumerate(curve) if not auc >= goal)
    if last_below + 1 == len(curve):
        return None
    (begin, low), (end, high) = curve[last_below:last_below + 2]
    return begin + (goal - low) / (high - low) * (end - begin)


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory of the records that data_prep built.",
                        required=True)
    flags.DEFINE_integer("num_train_steps", 5000, "Steps of every run.", lower_bound=1)
    flags.DEFINE_string("model_size", "tiny", "Model size: tiny, small, base or large.")
    flags.DEFINE_integer("train_batch_size", 16, "Examples per step.", lower_bound=1)
    overrides.define_setting_flags({}, {})
    command.run(main, __doc__, [
        "data_dir", "num_train_steps", "model_size", "train_batch_size", *overrides.ANY_SETTING],
        SYSTEMS, timeout=86_400)  # An answer is a whole run.
