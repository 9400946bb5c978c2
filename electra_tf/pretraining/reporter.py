"""Writes the loop's results to progress lines, metrics.jsonl and TensorBoard."""

import time
from collections.abc import Callable, Mapping
from typing import TextIO

from electra_tf.checkpoints.run_directory import METRICS_FILE
from electra_tf.platform.machine import peak_memory_bytes
from electra_tf.platform.storage import Path
from electra_tf.pretraining.timetable import Timetable
from electra_tf.pretraining.trainer import Totals
from electra_tf.reporting.metrics_log import (
    CHECKPOINT,
    EVAL,
    TRAIN,
    MetricsLog,
    Record,
    read_metrics,
)
from electra_tf.reporting.pace import Pace
from electra_tf.reporting.progress import Progress, progress_line
from electra_tf.reporting.tensorboard import TensorBoardWriter

MIN_LINE_SECONDS = 1.0
"""Shortest time between two progress lines; metrics.jsonl has every interval."""
LONG_RUN_SECONDS = 86_400
LONG_RUN_HINT = (
    "note     at this pace the run takes days: Ctrl-C ends it here. Faster are a smaller "
    "--model_size, fewer --num_train_steps or a smaller --train_batch_size, in a new --model_dir.")


class Reporter:
    """The logs of a run and the totals of the current interval."""

    def __init__(self, model_dir: Path, timetable: Timetable, *, tokens_per_step: int,
                 peak_fraction: Callable[[float], float | None], watch: Callable[[Record], str],
                 out: TextIO, clock: Callable[[], float] = time.monotonic):
        """Opens the run's logs and drops what they hold past the restored step.

        `tokens_per_step` counts all devices, `peak_fraction` maps tokens per second to the used
        fraction of their peak, `watch` returns a warning or "" for every record, also for those
        before an interruption, and `clock` returns seconds.
        """
        self._metrics = MetricsLog(model_dir / METRICS_FILE)
        self._metrics.rewind(timetable.first_step)
        self._watch = watch
        for record in read_metrics(self._metrics.path) if self._metrics.path.exists() else ():
            watch(record)
        self._board = TensorBoardWriter(model_dir / "tensorboard")
        self.timetable = timetable
        self._tokens_per_step, self._peak_fraction = tokens_per_step, peak_fraction
        self._out, self._clock = out, clock
        self._step = timetable.first_step
        self._totals: Totals = {}
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._pace = Pace(clock)
        self._last_line = clock()
        self._estimated = self._evaluated = False

    def say(self, text: str) -> None:
        """Prints a line at once."""
        print(text, file=self._out, flush=True)
        self._last_line = self._clock()

    def line_is_due(self) -> bool:
        """Tells whether nothing was printed for `runtime.log_every_seconds`."""
        every = self.timetable.runtime.log_every_seconds
        return bool(every) and self._clock() - self._last_line >= every

    def on_train(self, totals: Totals, step: int, *, complete: bool) -> None:
        """Takes the totals of the steps up to `step`.

        Args:
            totals: totals of the steps since the last call, at least one.
            step: number of finished steps.
            complete: ends an interval of metrics.jsonl. Otherwise only a line may be printed.
        """
        if self._step == self.timetable.first_step:
            self.say(f"first step after {self._pace.first_step():.1f} s")
        else:
            self._timed_steps += step - self._step
            self._timed_seconds += self._pace.steps(step - self._step)
        self._step = step
        for name, (total, weight) in totals.items():
            old_total, old_weight = self._totals.get(name, (0.0, 0.0))
            self._totals[name] = (old_total + total, old_weight + weight)
        if complete:
            self._report_interval()
        elif self.line_is_due():
            self._say_progress()

    def aside(self, name: str) -> None:
        """Counts the time since the last call for `name` instead of for the training steps."""
        self._pace.aside(name)

    def has_evaluation(self, step: int) -> bool:
        """Tells whether the step was evaluated before an interruption."""
        return self._metrics.path.exists() and any(
            record["kind"] == EVAL and record["step"] == step
            for record in read_metrics(self._metrics.path))

    def on_evaluated(self, batches: int) -> None:
        """Prints a line if one is due during an evaluation."""
        if not self._evaluated:
            self._pace.skip()  # The first batch is traced, and fixed noise is counted before it.
            self._evaluated = True
        if self.line_is_due():
            self.say(f"evaluation at step {self._step:,}: {batches:,} batches so far")

    def on_eval(self, results: Mapping[str, float]) -> None:
        """Reports an evaluation."""
        self._append({"kind": EVAL, "step": self._step, **results})
        self._board.scalars(self._step, {f"eval/{name}": value for name, value in results.items()})
        self._board.flush()

    def on_checkpoint(self, step: int) -> None:
        """Logs a saved checkpoint, so that the loss of all checkpoints is noticed."""
        self._metrics.append({"kind": CHECKPOINT, "step": step})
        self._pace.aside("checkpoint")

    def on_samples(self, markdown: str) -> None:
        """Writes sample corruptions for TensorBoard."""
        self._board.text(self._step, "samples", markdown)
        self._board.flush()

    def _append(self, record: Record) -> None:
        self._metrics.append(record)
        warning = self._watch(record)
        if warning:
            self.say(warning)

    def _report_interval(self) -> None:
        means, machine = self._say_progress()
        self._append({"kind": TRAIN, "step": self._step, **means, **machine})
        self._board.scalars(self._step, {f"train/{name}": value
                                         for name, value in (means | machine).items()})
        self._board.flush()
        self._totals, self._timed_steps, self._timed_seconds = {}, 0, 0.0

    def _say_progress(self) -> tuple[dict[str, float], dict[str, float]]:
        """Prints a line on the interval, unless the last one was printed just now.

        Returns:
            The means, and the machine's measurements.
        """
        means = {name: total / weight if weight else 0.0
                 for name, (total, weight) in self._totals.items()}
        rate = fraction = None
        if self._timed_steps:
            rate = self._timed_steps * self._tokens_per_step / max(self._timed_seconds, 1e-9)
            fraction = self._peak_fraction(rate)
        memory = peak_memory_bytes()
        machine = {name: value for name, value in (
            ("tokens_per_second", rate), ("peak_memory_bytes", memory), ("peak_fraction", fraction))
            if value is not None}
        if (self._clock() - self._last_line < MIN_LINE_SECONDS
                and self._step < self.timetable.num_steps):
            return means, machine
        steps_left = self.timetable.num_steps - self._step
        left = self._pace.seconds_left(steps_left, self.timetable.to_come(self._step))
        self.say(progress_line(Progress(
            step=self._step, num_steps=self.timetable.num_steps, loss=means["loss"],
            losses={name.removesuffix("_loss"): value for name, value in means.items()
                    if name.endswith("_loss")},
            learning_rate=means["learning_rate"], tokens_per_second=rate,
            peak_fraction=fraction, seconds_left=left,
            seconds_elapsed=self._pace.elapsed, peak_memory_bytes=memory)))
        if left is not None and not self._estimated:
            self._estimated = True
            if left > LONG_RUN_SECONDS:
                self.say(LONG_RUN_HINT)
        return means, machine
