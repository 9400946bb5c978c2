r"""Proposes what to pre-train within a time: measures this machine, then chooses size and steps.

    python -m electra_tf.apps.planning.plan --budget=2h --data_dir=records
    python -m electra_tf.apps.planning.plan --budget=1h30m --data_dir=records \
        --model_dir=runs/planned --run

Takes a minute: some steps of every network. docs/how_to/size_and_recipe.md has the runs behind the
expected AUC.
"""

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Sequence

from absl import flags

from electra_tf.apps.planning import throughput
from electra_tf.apps.planning.learning_curves import NETWORKS, Network
from electra_tf.data import mixture
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError
from electra_tf.reporting.tables import Table, table_text

BATCH = 16
"""Examples of a step, as in the measured runs: small batches learn most from the same tokens."""
START_SECONDS = 40.0
"""Time before the first step and after the last one: imports, tracing, drawing."""
SPARE = 0.05
"""Share of the remaining time for checkpoints, and for a machine that slows down."""
EVALUATED = 0.1
"""Largest share of the remaining time for evaluations. A held-out token takes about as long as a
training token: the discriminator reads it three times, without gradients."""
PAPERS_TOKENS = 16.4e9
"""Training tokens of the paper's ELECTRA-Small: 1,000,000 steps of 128 x 128."""
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_MOST_EVALUATIONS = 20
_EVAL_BATCH = 32
_MOST_EVAL_BATCHES = 100
_MANY_PASSES = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A run of one network that uses the whole budget."""

    network: Network
    tokens_per_second: float
    steps: int
    tokens: float
    eval_every_steps: int
    eval_batches: int

    @property
    def auc(self) -> float:
        """Returns the expected AUC on the text of the measured runs."""
        return self.network.auc(self.tokens)

    @property
    def extrapolated(self) -> bool:
        """Returns True for more tokens than any measured run of the network had."""
        return self.tokens > self.network.measured[-1][0]

    @property
    def recipe(self) -> str:
        """Returns "paper" if the run has as many tokens as the paper's."""
        return "short" if self.tokens < PAPERS_TOKENS else "paper"

    def command(self, data_dir: str, model_dir: str) -> list[str]:
        """Returns the words of the command that trains it."""
        return ["run_pretraining.py", f"--data_dir={data_dir}", f"--model_dir={model_dir}",
                *self.network.flags, f"--train_batch_size={BATCH}", f"--recipe={self.recipe}",
                f"--num_train_steps={self.steps}",
                f"--eval_every_steps={self.eval_every_steps}",
                f"--eval_batch_size={_EVAL_BATCH}", f"--eval_steps={self.eval_batches}"]


def seconds_of(text: str) -> float:
    """Returns the seconds of a duration.

    Raises:
        UserError: the text is not a duration, or less than a minute.

    >>> seconds_of("1h30m"), seconds_of("0.5h"), seconds_of("2d")
    (5400.0, 1800.0, 172800.0)
    """
    number = r"(\d{1,9}(?:\.\d{1,9})?)"
    found = re.fullmatch("".join(f"(?:{number}{unit})?" for unit in _UNITS), text.strip())
    seconds = sum(float(amount) * _UNITS[unit]
                  for amount, unit in zip(found.groups(), _UNITS, strict=True) if amount
                  ) if found else 0.0
    if seconds < 60:
        raise UserError("--budget must be a time of a minute or more, such as 45m, 1h30m or 2d. "
                        f"Received: {text!r}")
    return seconds


def plan(network: Network, tokens_per_second: float, seconds: float, length: int) -> Plan:
    """Returns the longest run of a network within a budget in seconds.

    Args:
        network: the network.
        tokens_per_second: its training throughput on this machine.
        seconds: the budget.
        length: tokens of an example.
    """
    room = (1 - SPARE) * (seconds - START_SECONDS) * tokens_per_second
    batches = max(1, int(EVALUATED * room / (_EVAL_BATCH * length)))
    evaluations = min(_MOST_EVALUATIONS, batches)
    batches = min(_MOST_EVAL_BATCHES, batches // evaluations)
    steps = max(1, int((room - evaluations * batches * _EVAL_BATCH * length) / (BATCH * length)))
    return Plan(network=network, tokens_per_second=tokens_per_second, steps=steps,
                tokens=float(steps * BATCH * length), eval_every_steps=-(-steps // evaluations),
                eval_batches=batches)


def report(plans: Sequence[Plan], best: Plan, records: mixture.Mixture) -> str:
    """Returns the table with its notes."""
    notes = ["AUC: final unigram_auc of runs on English Wikipedia and books; other text and "
             "vocabularies differ (docs/how_to/size_and_recipe.md)."]
    if any(proposed.extrapolated for proposed in plans):
        notes.append("* more tokens than were measured: extrapolated by a power law.")
    passes = best.tokens / records.tokens("train")
    notes.append(f"The proposed run reads the records {passes:,.1f} times"
                 + ("; more text would improve it." if passes > _MANY_PASSES else "."))
    return table_text(Table(
        title="Runs within the budget", notes=tuple(notes),
        heading=("network", "tokens/s", "steps", "M tokens", "AUC", ""),
        rows=tuple((each.network.name, f"{each.tokens_per_second:,.0f}", f"{each.steps:,}",
                    f"{each.tokens / 1e6:,.1f}", f"{each.auc:.3f}{' *' * each.extrapolated}",
                    "<- proposed" * (each is best)) for each in plans)))


def main() -> None:
    """Measures, prints the plan, and starts the proposed run if --run is given.

    Raises:
        UserError: no budget, no records, or --run without --model_dir.
    """
    values = flags.FLAGS
    for name in ("budget", "data_dir", *(["model_dir"] if values.run else [])):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    seconds = seconds_of(values.budget)
    records = mixture.load(values.data_dir)
    print(f"measuring this machine, {throughput.STEPS} steps of each network ...", flush=True)
    plans = []
    for network in NETWORKS:
        measured = throughput.tokens_per_second(
            [f"--data_dir={values.data_dir}", *network.flags, f"--train_batch_size={BATCH}",
             "--recipe=short"])
        plans.append(plan(network, measured, seconds, records.max_seq_length))
    best = max(plans, key=lambda proposed: proposed.auc)
    print(report(plans, best, records))
    command = best.command(values.data_dir, values.model_dir or "runs/planned")
    print(f"python {shlex.join(command)}", flush=True)
    if values.run:
        os.execv(sys.executable, [*throughput.PRETRAIN, *command[1:]])


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("budget", None, "Duration of the run, such as 45m, 1h30m or 2d.")
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built, or several "
                        "with weights, as run_pretraining.py takes them.")
    flags.DEFINE_string("model_dir", None, "Directory of the run; required with --run.")
    flags.DEFINE_bool("run", False, "Start the proposed run.")


def run() -> None:
    """Runs the command line."""
    define()
    command_line.run(main, summary=__doc__, groups={
        "What": ["budget", "data_dir"], "The run": ["model_dir", "run"]})


if __name__ == "__main__":
    run()
