r"""Measures how fast records become batches on the device, with all cores and nothing beside it.

    python -m benchmarks.pretraining.input_rate --data_dir=records --batch=32

Reads through the pipeline of a training run: shuffled windows, batched parsing, prefetching.
Compare the result with the tokens/s of `python -m benchmarks.pretraining`.
"""

import time

from absl import flags

from benchmarks.harness import command, tables
from electra_tf.config.pretraining import DataConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.data.manifest import Records
from electra_tf.data.pipeline import training_batches
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError
from electra_tf.training.strategies import create_strategy


def main() -> None:
    """Prints the median over several passes, and the range.

    Raises:
        UserError: the records hold less than one batch, or are damaged.
    """
    values = flags.FLAGS
    command.require("data_dir")
    records = Records.load(values.data_dir)
    rates = [read(records, values.batch, seed) for seed in range(values.rounds)]
    print(f"input: {tables.ranged(rates)} tokens/s")


def read(records: Records, batch: int, seed: int) -> float:
    """Returns tokens per second of one pass over the records, to tensors on the device."""
    held = records.manifest.examples("train")
    steps = held // batch
    if not steps:
        raise UserError(f"{records} holds {held} training examples, less than --batch={batch}.")
    dataset = create_strategy(RuntimeConfig()).distribute_datasets_from_function(
        lambda context: training_batches(
            records, pad_id=0, seed=seed, window_examples=DataConfig().shuffle_window,
            global_batch_size=batch, first_step=0, last_step=steps, context=context))
    start = time.perf_counter()
    for one in dataset:
        last = one
    last.ids.numpy()  # Waits for the device.
    return steps * batch * records.manifest.max_seq_length / (time.perf_counter() - start)


if __name__ == "__main__":
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
    flags.DEFINE_integer("batch", 32, "Examples per batch.", lower_bound=1)
    flags.DEFINE_integer("rounds", 5, "Passes over the records.", lower_bound=1)
    command_line.run(main, summary=__doc__, groups={
        "What": ["data_dir", "batch"], "How": ["rounds"]})
