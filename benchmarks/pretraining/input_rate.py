r"""Measures how fast records become batches on the device, and how often a step needs one.

    python -m benchmarks.pretraining.input_rate
    python -m benchmarks.pretraining.input_rate --data_dir=records --batch=32

Reads through the same pipeline as a training run: shuffled windows, batched parsing, prefetching.
Nothing else runs meanwhile; then our step of ELECTRA-Small is measured on batches in memory.
"""

import pathlib
import statistics
import tempfile
import time

import numpy as np
from absl import flags

from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.alone import measure_alone
from electra_tf.config.pretraining import DataConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.data import manifest, mixture
from electra_tf.data.example import serialize_example
from electra_tf.data.pipeline import training_batches
from electra_tf.data.shards import write_shard
from electra_tf.platform import command_line, errors
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from electra_tf.training.strategies import create_strategy

SHARDS = 8


def main() -> None:
    """Prints both rates and their ratio.

    Raises:
        UserError: the records hold less than one batch, or are damaged.
    """
    values = flags.FLAGS
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(values.data_dir or scratch)
        if not values.data_dir:
            write_records(directory, values.examples, values.length)
        records = mixture.load(directory)
        rates = [read(records, values.batch, seed) for seed in range(values.rounds)]
    rate = statistics.median(rates)
    print(f"input  {rate:>12,.0f} tokens/s  ({min(rates):,.0f} to {max(rates):,.0f})", flush=True)
    step = measure_alone(f"small-{values.batch}x{records.max_seq_length}",
                         precision=values.precision, rounds=values.rounds)
    if step.failure:
        raise errors.UserError(f"the step failed: {step.failure}")
    needed = values.batch * records.max_seq_length / statistics.median(step.seconds)
    print(f"step   {needed:>12,.0f} tokens/s\ninput is {rate / needed:,.0f} x as fast")


def write_records(directory: pathlib.Path, examples: int, length: int) -> None:
    """Writes shards of random ids, a vocabulary and a manifest."""
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *(f"word{index}" for index in range(30_000))))
    vocabulary.save(directory / manifest.VOCABULARY_NAME)
    numbers = np.random.default_rng(1)
    counts = [examples // SHARDS + (index < examples % SHARDS) for index in range(SHARDS)]
    shards = []
    for index, count in enumerate(counts):
        ids = numbers.integers(plain.FIRST_WORD_ID, vocabulary.size, [count, length])
        shards.append(write_shard(
            directory / f"train-{index:05d}.tfrecord", "train",
            [(serialize_example(row.tolist(), length // 2, 2), length) for row in ids]))
    manifest.Manifest(
        format_version=manifest.FORMAT_VERSION, max_seq_length=length, packing="full",
        token_bytes=2, settings={}, shards=tuple(shards), counts=manifest.Counts(
            text_tokens=examples * length, content_tokens=examples * length, examples=examples),
        vocabulary=manifest.Tokenization(
            size=vocabulary.size, sha256=vocabulary.sha256, lower_case=True, strip_accents=True),
    ).save(directory)


def read(records: mixture.Mixture, batch: int, seed: int) -> float:
    """Returns tokens per second of one pass over the records, to tensors on the device."""
    examples = records.examples("train")
    if examples < batch:
        raise errors.UserError(f"{records} holds {examples} training examples, less than "
                               f"--batch={batch}.")
    steps = examples // batch
    strategy = create_strategy(RuntimeConfig())
    dataset = strategy.distribute_datasets_from_function(lambda context: training_batches(
        records, pad_id=plain.PAD_ID, seed=seed,
        window_examples=DataConfig().shuffle_window, global_batch_size=batch, first_step=0,
        last_step=steps, context=context))
    start = time.perf_counter()
    for one in dataset:
        last = one
    last.ids.numpy()
    return steps * batch * records.max_seq_length / (time.perf_counter() - start)


def _define_flags() -> None:
    flags.DEFINE_string("data_dir", "", "Records to read; made up if empty.")
    flags.DEFINE_integer("length", 128, "Tokens per made-up example.", lower_bound=8)
    flags.DEFINE_integer("batch", 32, "Examples per batch.", lower_bound=1)
    flags.DEFINE_integer("examples", 100_000, "Made-up examples.", lower_bound=1)
    flags.DEFINE_integer("rounds", 5, "Passes over the records, and steps.", lower_bound=1)
    flags.DEFINE_enum("precision", "bfloat16", ["bfloat16", "float32"], "Of the step.")


if __name__ == "__main__":
    _define_flags()
    command_line.run(main, summary=__doc__, groups={
        "What": ["data_dir", "length", "batch", "examples"], "How": ["rounds", "precision"]})
