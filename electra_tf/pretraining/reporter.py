"""Writes the loop's results to progress lines, metrics.jsonl and TensorBoard."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

import tensorflow as tf

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.core.machine import peak_memory_bytes
from electra_tf.core.storage import Path
from electra_tf.modeling import parameter_shapes
from electra_tf.modeling.flops import matmul_flops_per_token, peak_flops
from electra_tf.pretraining.evaluation import report
from electra_tf.pretraining.run import Run
from electra_tf.pretraining.steps import Events, Totals
from electra_tf.reporting import metrics_log
from electra_tf.reporting.progress import StepTimer, duration
from electra_tf.reporting.samples import Corruption, terminal_page
from electra_tf.reporting.trackers import Log
from electra_tf.training.devices import device_name
from electra_tf.training.step import TrainState

MIN_LINE_SECONDS = 1.0
"""Shortest time between two progress lines; metrics.jsonl has every interval."""
COLLAPSED_DEVIATION = 0.01
"""Standard deviation of a collapsed discriminator's logits, as a fraction of its largest so far."""


class Reporter:
    """The logs of a run and the totals of the current interval of metrics.jsonl."""

    def __init__(self, run: Run, directory: Path, events: Events, *, out: TextIO,
                 track: Log, clock: Callable[[], float] = time.monotonic):
        """Opens the logs in a directory and drops what they hold past the restored step."""
        # A run that continues has records of earlier steps; the collapse warning reads them again.
        self._run, self._directory = run, directory
        self._metrics = directory / METRICS_FILE
        earlier = metrics_log.rewind(self._metrics, events.first_step)
        self._evaluations = {
            record["step"] for record in earlier if record["kind"] == metrics_log.EVAL}
        self._largest_deviation, self._collapsed = 0.0, False
        for record in earlier:
            self._collapse_warning(record)

        # Tokens per second at the peak of all devices; None where it is unknown.
        flops = matmul_flops_per_token(
            run.objective.network_specs(), run.length,
            run.config.masking.max_predictions(run.length))
        peak = flops and peak_flops(device_name(run.strategy), run.config.training.precision.value)
        self._peak = peak * run.strategy.num_replicas_in_sync / flops if peak else None

        # Outputs, and the totals and times of the current interval.
        self._board = tf.summary.create_file_writer(str(directory / "tensorboard"))
        self.events = events
        self._out, self._track, self._clock = out, track, clock
        self._step = events.first_step
        self._totals: Totals = {}
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._timer = StepTimer(clock)
        self._last_line = clock()
        self._evaluated = False

    def on_start(self, state: TrainState, new_parts: Sequence[str]) -> None:
        """Prints the model, records, devices and steps; `new_parts` have new weights."""
        # The networks and the records.
        run, training, first_step = self._run, self._run.config.training, self.events.first_step
        parameters = sum(weight.shape.num_elements() for weight in state.model.trainable_variables)
        parts = ", ".join(f"{network.name} {parameter_shapes.size(network.weights):,}"
                          for network in run.objective.network_specs())
        examples, batch = run.examples("train"), training.train_batch_size
        self.log(f"model    {parameters:,} parameters"
                 + (f": {parts}, shared weights counted in each" if parts else ""))
        self.log(f"records  {examples:,} examples of {run.length} tokens, "
                 f"{run.examples('eval'):,} held out; an epoch is "
                 f"{examples / batch:,.0f} steps of {batch}")

        # Where the weights come from, what computes, and how far the run is.
        if not first_step:
            initial = "new weights" if run.initial is None else run.initial.source
            new = ", ".join([*new_parts, *run.added_rows])
            self.log(f"begins   with {initial}" + (f"; new: {new}" if new else ""))
        self.log(f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
                 f"{training.precision.value}")
        self.log(f"steps    {first_step:,} done, {training.num_train_steps - first_step:,} to go"
                 + ("" if first_step < training.num_train_steps else ": this run is finished"))
        if run.finished_at:
            stable = run.config.optimizer.decay_fraction == 0.0
            self.log("extended at step " + ", ".join(f"{step:,}" for step in run.finished_at)
                     + (": the learning rate continues"
                        if stable or run.stable_until == run.finished_at[-1] else
                        ": the learning rate warms up again to its peak and decays"))

    def log(self, text: str) -> None:
        """Prints a line at once."""
        print(text, file=self._out, flush=True)
        self._last_line = self._clock()

    def is_line_due(self) -> bool:
        """Returns True if no line was printed for `runtime.log_every_seconds`."""
        every = self.events.runtime.log_every_seconds
        return bool(every) and self._clock() - self._last_line >= every

    def on_train(self, totals: Totals, step: int, *, complete: bool) -> None:
        """Takes the totals of the steps since the last call, at least one, up to `step`.

        `complete` ends an interval of metrics.jsonl. Otherwise only a line may be printed.
        """
        if self._step == self.events.first_step:
            self.log(f"first step after {self._timer.first_step():.1f} s")
        else:
            self._timed_steps += step - self._step
            self._timed_seconds += self._timer.steps(step - self._step)
        self._step = step

        # The totals of the interval so far, of which the log writes the means.
        for name, (total, weight) in totals.items():
            old_total, old_weight = self._totals.get(name, (0.0, 0.0))
            self._totals[name] = (old_total + total, old_weight + weight)
        if complete:
            self._record(metrics_log.TRAIN, self._log_progress())
            self._totals, self._timed_steps, self._timed_seconds = {}, 0, 0.0
        elif self.is_line_due():
            self._log_progress()

    def has_evaluation(self, step: int) -> bool:
        """Returns True for a step that was evaluated, also before an interruption."""
        return step in self._evaluations

    def on_evaluated(self, batches: int) -> None:
        """Prints a line if one is due during an evaluation."""
        if not self._evaluated:
            self._timer.lap()  # The first batch is traced, and fixed noise is counted before it.
            self._evaluated = True
        if self.is_line_due():
            self.log(f"evaluation at step {self._step:,}: {batches:,} batches so far")

    def on_eval(self, scores: Mapping[str, float]) -> None:
        """Reports an evaluation: as a table at the end of the run, before that as a line."""
        self.log(report(self._run, scores, self._step, self._directory,
                        as_table=self._step >= self.events.num_steps))
        self._record(metrics_log.EVAL, scores)
        self._evaluations.add(self._step)
        self._timer.count_other_work("evaluation")

    def on_checkpoint(self, step: int) -> None:
        """Logs a saved checkpoint; the record shows that a run without checkpoints lost them."""
        metrics_log.append(self._metrics, {"kind": metrics_log.CHECKPOINT, "step": step})
        self._timer.count_other_work("checkpoint")

    def on_samples(self, samples: Sequence[Corruption]) -> None:
        """Writes sample corruptions for TensorBoard."""
        with self._board.as_default(self._step):
            tf.summary.text("samples", f"```\n{terminal_page(samples)}\n```")
        self._board.flush()
        self._timer.count_other_work("samples")

    def _record(self, kind: str, values: Mapping[str, float]) -> None:
        record = {"kind": kind, "step": self._step, **values}
        metrics_log.append(self._metrics, record)
        if warning := self._collapse_warning(record):
            self.log(warning)
        with self._board.as_default(self._step):
            for name, value in values.items():
                tf.summary.scalar(f"{kind}/{name}", value)
        self._board.flush()
        self._track(self._step, {f"{kind}/{name}": value for name, value in values.items()})

    def _collapse_warning(self, record: metrics_log.Record) -> str:
        """Returns, once, a warning that the discriminator's logits are equal for all tokens.

        It rarely recovers within a short run, and its encoder stops learning.
        """
        # Var(logit) = E(logit^2) - E(logit)^2; records of other kinds have neither.
        mean, square = (record.get(f"discriminator_logit{end}", math.nan)
                        for end in ("", "_squared"))
        if self._collapsed or not math.isfinite(square):
            return ""
        deviation = math.sqrt(max(0.0, square - mean**2))
        self._largest_deviation = max(self._largest_deviation, deviation)
        self._collapsed = deviation < COLLAPSED_DEVIATION * self._largest_deviation
        return "" if not self._collapsed else (
            f"warning  the discriminator has collapsed: at step {record['step']:,} the standard "
            f"deviation of its logits over tokens is {deviation:.1e}, once it was "
            f"{self._largest_deviation:.2g}. Begin again with half the --learning_rate or with "
            "more --warmup_steps; or with --recipe=short, if the run has another recipe.")

    def _log_progress(self) -> dict[str, float]:
        """Returns the interval's means and the machine's measurements, and prints a line of them.

        The line is left out within `MIN_LINE_SECONDS` after another one, except at the last step.
        """
        # Means of losses and metrics, and measurements of the timed steps, padding included.
        means = {name: total / weight if weight else 0.0
                 for name, (total, weight) in self._totals.items()}
        machine: dict[str, float] = {}
        if self._timed_steps:
            tokens = self._run.config.training.train_batch_size * self._run.length
            machine["tokens_per_second"] = (
                self._timed_steps * tokens / max(self._timed_seconds, 1e-9))
        machine["peak_memory_bytes"] = peak_memory_bytes()
        if self._timed_steps and self._peak:
            machine["peak_fraction"] = machine["tokens_per_second"] / self._peak
        num_steps = self.events.num_steps
        if self._clock() - self._last_line < MIN_LINE_SECONDS and self._step < num_steps:
            return means | machine

        # The line, without unknown columns, which are as wide at every step of a run:
        # step  1,200/10,000  loss 12.345  generator  5.432  discriminator 0.1383  lr 3.20e-04
        #   4,210 tok/s  37 % of peak    2.2 GB  elapsed 0:05:45  ETA 0:42:10
        columns = [f"step {self._step:>{len(f'{num_steps:,}')},}/{num_steps:,}",
                   f"loss {_number(means['loss'])}"]
        columns += [f"{name.removesuffix('_loss')} {_number(value)}"
                    for name, value in means.items() if name.endswith("_loss")]
        columns.append(f"lr {means['learning_rate']:.2e}")
        if self._timed_steps:
            columns.append(f"{machine['tokens_per_second']:>7,.0f} tok/s")
        if "peak_fraction" in machine:
            columns.append(f"{100 * machine['peak_fraction']:>2.0f} % of peak")
        columns += [f"{machine['peak_memory_bytes'] / 1e9:>5.1f} GB",
                    f"elapsed {duration(self._timer.elapsed)}"]
        remaining = self._timer.remaining_seconds(
            num_steps - self._step, self.events.remaining(self._step))
        if remaining is not None:
            columns.append(f"ETA {duration(remaining)}")
        self.log("  ".join(columns))
        return means | machine


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:>6.3f}"
