r"""Proposes what to pre-train within a time: measures this machine, then chooses a size.

    python -m electra_tf.apps.planning.plan --budget=2h --data_dir=records

The measurement takes a minute or two. The command that it prints measures again and fits its steps
to the budget. docs/how_to/size_and_recipe.md explains the expected AUC.
"""

import functools
from collections.abc import Sequence

from absl import flags

from electra_tf.config.pretraining import resolve
from electra_tf.core import command_line, storage
from electra_tf.data import manifest
from electra_tf.pretraining.command import parse_duration
from electra_tf.reporting.learning_curves import NETWORKS
from electra_tf.reporting.tables import text_table

BATCH = 16
"""Examples of a step. Small batches learn most from the same tokens; the runs of `NETWORKS` had 16,
too."""
SIMILAR = 0.02
"""Difference of AUC within which a wider network has the better scores after fine-tuning: 4 x 256
with 0.814 had chunking 87.2, and 2 x 128 with 0.835 had 85.4."""
EVALUATIONS = 20
PAPER_TOKENS = 16.4e9  # ELECTRA-Small's: 1,000,000 steps of 128 x 128 tokens.


def main() -> None:
    """Measures, and prints the table and the command."""
    values = flags.FLAGS
    seconds, records = parse_duration(values.budget), manifest.load_records(values.data_dir)
    print(f"measuring {len(NETWORKS)} networks for about 40 s each ...", flush=True)
    from electra_tf.pretraining import budget  # TensorFlow takes seconds to import.
    from electra_tf.pretraining.run import prepare_run

    # The steps of every network within the budget, and the AUC that runs of so many tokens had.
    rows, expected, tokens = [], [], []
    for network in NETWORKS:
        run = prepare_run(
            resolve(network.size, "short", {"training.train_batch_size": BATCH}),
            values.data_dir, storage.path(values.model_dir), restart=True)
        speed = budget.measure(run)
        steps = budget.steps_within(run, speed, seconds)
        tokens.append(steps * BATCH * records.max_seq_length)
        expected.append(network.auc(tokens[-1]))
        extrapolated = "*" if tokens[-1] > network.measured[-1][0] else ""
        rows.append((network.size, f"{tokens[-1] / steps / speed.step:,.0f}", f"{steps:,}",
                     f"{tokens[-1] / 1e6:,.1f}", f"{expected[-1]:.2f}{extrapolated}"))
    # The chosen network, and how often it reads the text.
    best = preferred(expected)
    passes = tokens[best] / sum(shard.tokens for shard in records.shards["train"])
    notes = ("AUC: final unigram_auc of runs on English Wikipedia and books; other text and "
             "vocabularies differ. * more tokens than were measured.",
             "The networks have ModernBERT's layers: docs/how_to/modern_encoder.md.",
             f"{NETWORKS[best].size} reads the records {passes:,.1f} times"
             + ("; more text would improve it." if passes > 10 else "."))
    print(text_table(f"Runs within {values.budget}", rows,
                     ("model size", "tokens/s", "steps", "M tokens", "AUC"), notes))

    # Its command.
    steps = tokens[best] // (BATCH * records.max_seq_length)
    recipe = "short" if tokens[best] < PAPER_TOKENS else "paper"
    words = [
        f"--budget={values.budget}", f"--data_dir={values.data_dir}",
        f"--model_dir={values.model_dir}", f"--model_size={NETWORKS[best].size}",
        f"--train_batch_size={BATCH}", f"--recipe={recipe}",
        f"--eval_every_steps={-(-steps // EVALUATIONS)}"]
    print(f"\n{command_line.command('pretrain')} {command_line.shell_command(words)}")


def preferred(expected: Sequence[float]) -> int:
    """Returns the index of the largest network whose AUC is similar to the best; smallest first."""
    return max(index for index, auc in enumerate(expected) if auc > max(expected) - SIMILAR)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("budget", None, "Time for the run, such as 45m, 1h30m or 2d.",
                        required=True)
    flags.DEFINE_string("data_dir", None, "Directory of records, as data_prep built them.",
                        required=True)
    flags.DEFINE_string("model_dir", "runs/planned", "Directory of the run in the command.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
