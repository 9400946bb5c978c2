r"""Proposes what to pre-train within a time: measures this machine, then chooses size and steps.

    python -m electra_tf.apps.planning.plan --budget=2h --data_dir=records
    python -m electra_tf.apps.planning.plan --budget=1h30m --data_dir=records \
        --model_dir=runs/planned --run

The measurement takes about 90 s, 30 s for each network; the budget starts after it. With --run, a
run that would miss the budget starts again with other steps after a tenth of it, at most two
minutes. If --model_dir already holds a run, the program continues it, or extends a finished one by
--budget. docs/how_to/size_and_recipe.md explains the expected AUC.
"""

import dataclasses
import functools
import operator
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from absl import flags

from electra_tf.checkpoints import checkpoint_files
from electra_tf.checkpoints.run_directory import (
    CHECKPOINTS,
    METRICS_FILE,
    is_taken,
    read_identity,
    settings_of,
)
from electra_tf.config.overrides import flatten
from electra_tf.config.pretraining import SIZES, PretrainingConfig
from electra_tf.data import manifest
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.signals import Interrupted
from electra_tf.platform.storage import Path
from electra_tf.reporting.learning_curves import NETWORKS, MeasuredNetwork
from electra_tf.reporting.metrics_log import TRAIN, read_metrics
from electra_tf.reporting.tables import TextTable, table_text

BATCH, EVAL_BATCH = 16, 32
"""Examples of a step and of an evaluation's batch. Small batches learn most from the same tokens;
the runs of `NETWORKS` had 16, too."""
END_SECONDS = 5.0  # Duration of the last checkpoint and of the curves.
_SPARE, _EVALUATED = 0.02, 0.1
"""Shares of the remaining time: for checkpoints and samples, and at most for evaluations."""
_MAX_EVALUATIONS, _MAX_EVAL_BATCHES = 20, 100
_MIN_CHECK_SECONDS, _MAX_CHECK_SECONDS = 20.0, 120.0
"""Bounds of the time after which a run's throughput is compared with the plan."""
_POLL_SECONDS = 0.5
_WARM_UP_SECONDS, _MEASURED_SECONDS = 4.0, 8.0
"""A small network's first 100 steps have two thirds of its later throughput."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timing:
    """The durations of the parts of a run."""

    tokens_per_second: float
    """Training tokens, padding included, after the warm-up and without evaluations."""
    start_seconds: float  # From the start of the process to the end of the first step.
    eval_seconds: float  # Duration of an evaluation's batch.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A run of one network that uses the whole budget."""

    network: MeasuredNetwork
    timing: Timing
    seconds: float  # The budget.
    length: int  # Tokens of an example.
    steps: int
    evaluations: int
    eval_batches: int  # Batches of an evaluation.

    @property
    def tokens(self) -> float:
        """Returns the training tokens, padding included."""
        return float(self.steps * BATCH * self.length)

    def command(self, data_dir: str, model_dir: str) -> list[str]:
        """Returns the words of the command that trains it."""
        paper_tokens = 16.4e9  # ELECTRA-Small's: 1,000,000 steps of 128 x 128 tokens.
        return [*pretrain(), f"--data_dir={data_dir}", f"--model_dir={model_dir}",
                *self.network.flags, f"--train_batch_size={BATCH}",
                f"--recipe={'short' if self.tokens < paper_tokens else 'paper'}",
                f"--num_train_steps={self.steps}",
                *_evaluation_flags(self.steps, self.evaluations, self.eval_batches)]

    def meets_budget(self, tokens_per_second: float) -> bool:
        """Returns True for a run that ends within 3 % of its budget at its own throughput."""
        excess_steps = self.steps - replan(self, tokens_per_second, self.seconds).steps
        seconds = excess_steps * BATCH * self.length / tokens_per_second
        return abs(seconds) <= 0.03 * self.seconds


def _evaluation_flags(steps: int, evaluations: int, batches: int) -> list[str]:
    return [f"--eval_every_steps={-(-steps // evaluations)}",
            f"--eval_batch_size={EVAL_BATCH}", f"--eval_steps={batches}"]


def parse_duration(text: str) -> float:
    """Returns the seconds of a duration; `UserError` for another text or less than a minute.

    >>> parse_duration("1h30m"), parse_duration("0.5h"), parse_duration("2d")
    (5400.0, 1800.0, 172800.0)
    """
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    match = re.fullmatch("".join(rf"(?:(\d{{1,9}}(?:\.\d{{1,9}})?){unit})?" for unit in units),
                         text.strip())
    amounts = match.groups(default="0") if match else "0000"
    seconds = sum(map(operator.mul, map(float, amounts), units.values()))
    if seconds < 60:
        raise UserError("--budget must be a time of a minute or more, such as 45m, 1h30m or 2d. "
                        f"Received: {text!r}")
    return seconds


def pretrain() -> list[str]:
    """Returns the words that start pre-training."""
    return command_line.other_program(
        "electra-pretrain", "electra_tf.pretraining.command", "run_pretraining.py")


def measure(run_flags: Sequence[str], tokens_per_step: int) -> Timing:
    """Trains a run with its own flags for some seconds and returns its timing.

    The flags are those of run_pretraining.py, without --model_dir and --num_train_steps. A
    command that fails is a `UserError` with its message.
    """
    with tempfile.TemporaryDirectory() as directory:
        model_dir, clock = storage.path(directory) / "run", time.monotonic
        begin, first_step, warm, last, evaluations = clock(), None, None, None, 0
        process = subprocess.Popen(
            [*pretrain(), *run_flags, f"--model_dir={model_dir}", "--num_train_steps=100000000",
             "--log_every_steps=10", "--eval_every_steps=30", "--eval_steps=2",
             "--sample_every_steps=0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        for line in process.stdout:
            if line.startswith("first step"):
                first_step = clock()
            elif match := re.match(r"(?:evaluation at )?step +([\d,]+)", line):
                evaluations += line.startswith("evaluation")
                last = int(match[1].replace(",", "")), clock(), evaluations
                # A quick network prints evaluations alone.
                if warm is None and evaluations > 1 and clock() - first_step > _WARM_UP_SECONDS:
                    warm = last
                elif warm and clock() - warm[1] > _MEASURED_SECONDS and evaluations > warm[2]:
                    break
        process.terminate()
        _, errors = process.communicate()
        if warm is None or last is warm:
            *_, reason = errors.strip().splitlines() or [f"status {process.returncode}"]
            raise UserError(f"run_pretraining.py: {reason.removeprefix('error: ')}")
        throughput = training_throughput(model_dir, after_step=warm[0])
        steps, seconds, evaluated = (end - start for start, end in zip(warm, last, strict=True))
        eval_seconds = seconds - steps * tokens_per_step / throughput
        return Timing(tokens_per_second=throughput, start_seconds=first_step - begin,
                      eval_seconds=max(1e-3, eval_seconds / max(1, evaluated) / 2))


def training_throughput(model_dir: Path, after_step: int = 0) -> float | None:
    """Returns the tokens/s of a run's steps after a step; None if it reported none yet."""
    steps, seconds, before = 0, 0.0, 0
    path = model_dir / METRICS_FILE
    for record in read_metrics(path) if path.exists() else ():
        if record["kind"] == TRAIN:
            if record["step"] > after_step and record["tokens_per_second"]:
                steps += record["step"] - before
                seconds += (record["step"] - before) / record["tokens_per_second"]
            before = record["step"]
    return steps / seconds if steps else None


def plan(network: MeasuredNetwork, timing: Timing, seconds: float, length: int) -> Plan:
    """Returns the longest run of a network within `seconds`, from start to end of the process."""
    available = max(0.0, (1 - _SPARE) * (seconds - timing.start_seconds - END_SECONDS))
    evaluations, batches = _split_evaluations(_EVALUATED * available / timing.eval_seconds)
    training = available - evaluations * batches * timing.eval_seconds
    steps = max(1, int(training * timing.tokens_per_second / (BATCH * length)))
    return Plan(network=network, timing=timing, seconds=seconds, length=length, steps=steps,
                evaluations=min(evaluations, steps), eval_batches=batches)


def _split_evaluations(batches: float) -> tuple[int, int]:
    """Returns the evaluations of a run and the batches of each, at most `batches` in total."""
    batches = max(1, int(batches))
    evaluations = min(_MAX_EVALUATIONS, batches)
    return evaluations, min(_MAX_EVAL_BATCHES, batches // evaluations)


def replan(planned: Plan, tokens_per_second: float, seconds: float) -> Plan:
    """Returns the plan of a run at its own throughput, for `seconds` of its budget."""
    timing = dataclasses.replace(planned.timing, tokens_per_second=tokens_per_second)
    return plan(planned.network, timing, seconds, planned.length)


def train(planned: Plan, data_dir: str, model_dir: str) -> None:
    """Trains a plan's run; starts it again with other steps if it would miss the budget."""
    begin, measured, process = time.monotonic(), None, None
    check_seconds = planned.timing.start_seconds + min(
        max(0.1 * planned.seconds, _MIN_CHECK_SECONDS), _MAX_CHECK_SECONDS)
    try:
        process = subprocess.Popen(planned.command(data_dir, model_dir))
        while process.poll() is None and (
                measured is None or time.monotonic() - begin < check_seconds):
            time.sleep(_POLL_SECONDS)
            # The first 100 steps are slower.
            measured = training_throughput(storage.path(model_dir), after_step=100)
        if process.returncode is None and not planned.meets_budget(measured):
            process.terminate()
            process.wait()  # It saves its state, which takes some of the time.
            corrected = replan(planned, measured, planned.seconds - (time.monotonic() - begin))
            command = corrected.command(data_dir, model_dir)
            print(f"the run trains at {measured:,.0f} tokens/s, not at "
                  f"{planned.timing.tokens_per_second:,.0f}. It starts again with "
                  f"{corrected.steps:,} steps in the remaining {corrected.seconds:,.0f} s:\n"
                  f"{shlex.join(command)}", flush=True)
            process = subprocess.Popen([*command, "--restart"])
        if process.wait():
            raise SystemExit(process.returncode)
    except KeyboardInterrupt as interrupt:
        if process is not None:
            process.terminate()
            process.wait()
        raise Interrupted(getattr(interrupt, "number", signal.SIGINT), "") from None


def continue_command(data_dir: str, model_dir: Path, seconds: float | None) -> list[str]:
    """Returns the words of the command that continues the run in a directory.

    A finished run is extended by a budget of `seconds`; without a budget it is a `UserError`.
    """
    identity = read_identity(model_dir, PretrainingConfig())
    steps, initial = identity["training.num_train_steps"], identity.get("initial")
    batch = identity["training.train_batch_size"]
    defaults = flatten(SIZES["small"]) | {"training.num_train_steps": steps}
    words = [*pretrain(), f"--data_dir={data_dir}", f"--model_dir={model_dir}", *(
        f"--set={name}={value}" for name, value in settings_of(identity).items()
        if value != defaults.get(name))]
    if initial:
        words.append(f"--init_checkpoint={initial.rpartition(', step ')[0] or initial}")
    if max(checkpoint_files.sealed_steps(model_dir / CHECKPOINTS), default=0) >= steps:
        measured = training_throughput(model_dir)
        if seconds is None or measured is None:
            raise UserError(f"--model_dir={model_dir} holds a run that is finished after {steps:,} "
                            "steps; give --budget to extend it, or name a new directory.")
        # The first step of an extension ends after 15 s.
        tokens = max(0.0, seconds - 15.0 - END_SECONDS) * measured
        steps += max(1, int((1 - _SPARE - _EVALUATED) * tokens
                            / (batch * identity["data.max_seq_length"])))
    words.append(f"--num_train_steps={steps}")
    # An example of an evaluation takes less time than one of training.
    return words + _evaluation_flags(
        steps, *_split_evaluations(_EVALUATED * steps * batch / EVAL_BATCH))


def main() -> None:
    """Measures, prints the plan, and trains the proposed run if --run is given."""
    values = flags.FLAGS
    seconds = parse_duration(values.budget) if values.budget else None
    if values.model_dir and values.data_dir and is_taken(storage.path(values.model_dir)):
        words = continue_command(values.data_dir, storage.path(values.model_dir), seconds)
        print(f"{values.model_dir} holds a run; to continue it:\n{shlex.join(words)}", flush=True)
        if values.run:
            os.execvp(words[0], words)
        return
    for name in ("budget", "data_dir", *(["model_dir"] if values.run else [])):
        if not values[name].value:
            raise UserError(f"--{name} is needed: {values[name].help}")
    records = manifest.load_records(values.data_dir)
    length = records.max_seq_length
    print(f"measuring for about {0.5 * len(NETWORKS):g} minutes; the budget starts afterwards ...",
          flush=True)
    plans = [plan(network, measure(
        [f"--data_dir={values.data_dir}", *network.flags, f"--train_batch_size={BATCH}",
         f"--eval_batch_size={EVAL_BATCH}", "--recipe=short"], BATCH * length),
        seconds, length) for network in NETWORKS]
    best = max(plans, key=lambda proposed: proposed.network.auc(proposed.tokens))
    notes = ["AUC: final unigram_auc of runs on English Wikipedia and books; other text and "
             "vocabularies differ (docs/how_to/size_and_recipe.md)."]
    extrapolated = [proposed.tokens > proposed.network.measured[-1][0] for proposed in plans]
    if any(extrapolated):
        notes.append("* more tokens than were measured: extrapolated by a power law.")
    passes = best.tokens / sum(shard.tokens for shard in records.shards["train"])
    notes.append(f"The proposed run reads the records {passes:,.1f} times"
                 + ("; more text would improve it." if passes > 10 else "."))
    print(table_text(TextTable(
        title="Runs within the budget", notes=tuple(notes),
        heading=("network", "tokens/s", "steps", "M tokens", "AUC", ""),
        rows=tuple((proposed.network.name, f"{proposed.timing.tokens_per_second:,.0f}",
                    f"{proposed.steps:,}", f"{proposed.tokens / 1e6:,.1f}",
                    f"{proposed.network.auc(proposed.tokens):.3f}{' *' * is_extrapolated}",
                    "<- proposed" * (proposed is best))
                   for proposed, is_extrapolated in zip(plans, extrapolated, strict=True)))))
    model_dir = values.model_dir or "runs/planned"
    print(shlex.join(best.command(values.data_dir, model_dir)), flush=True)
    if values.run:
        train(best, values.data_dir, model_dir)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("budget", None, "Training time of the run, such as 45m, 1h30m or 2d.")
    flags.DEFINE_string("data_dir", None, "Directory of the records that data_prep built.")
    flags.DEFINE_string("model_dir", None, "Directory of the run; required with --run.")
    flags.DEFINE_bool("run", False, "Start the proposed run.")


run = functools.partial(command_line.run, main, define, summary=__doc__)

if __name__ == "__main__":
    run()
