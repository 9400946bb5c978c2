"""Turns what the loop returns into progress lines, metrics.jsonl and TensorBoard."""

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from electra_tf.storage import Path
from electra_tf.training.metrics_log import MetricsLog, read_metrics
from electra_tf.training.progress import Progress, progress_line
from electra_tf.training.tensorboard import TensorBoardWriter
from electra_tf.training.trainer import Totals


class Reporter:
    """Adds up totals over an interval and reports their means.

    The first step is timed apart: it holds the tracing and compiling of the graph.
    """

    def __init__(self, model_dir: Path, *, first_step: int, num_steps: int,
                 intervals: Sequence[int], tokens_per_step: int,
                 peak_fraction: Callable[[float], float | None], out: TextIO):
        """Opens the run's logs and drops what they hold past the restored step.

        Args:
            model_dir: the run's directory.
            first_step: step that the run continues from.
            num_steps: of the whole run.
            intervals: a report ends at every multiple of each. The steps between checkpoints are
                among them, so that a run that is killed and resumed reports the same means.
            tokens_per_step: over all devices.
            peak_fraction: maps tokens per second to the used fraction of the devices' peak.
            out: where lines are printed.
        """
        self._metrics = MetricsLog(model_dir / "metrics.jsonl")
        self._metrics.rewind(first_step)
        self._board = TensorBoardWriter(model_dir / "tensorboard")
        self._num_steps, self._intervals = num_steps, intervals
        self._tokens_per_step, self._peak_fraction = tokens_per_step, peak_fraction
        self._out = out
        self._step = first_step
        self._totals: Totals = {}
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._started = self._resumed = time.monotonic()

    def say(self, text: str) -> None:
        """Prints a line at once."""
        print(text, file=self._out, flush=True)

    def on_train(self, totals: Totals, step: int) -> None:
        """Takes the totals of the steps up to `step`; reports when an interval is complete."""
        now, steps = time.monotonic(), step - self._step
        if self._resumed == self._started:
            self.say(f"first step after {now - self._started:.1f} s")
        else:
            self._timed_steps += steps
            self._timed_seconds += now - self._resumed
        self._resumed = now
        self._step = step
        for name, (total, weight) in totals.items():
            old_total, old_weight = self._totals.get(name, (0.0, 0.0))
            self._totals[name] = (old_total + total, old_weight + weight)
        if self._step == self._num_steps or any(
                self._step % interval == 0 for interval in self._intervals):
            self._report_interval()

    def skip_time(self) -> None:
        """Leaves out of the tokens per second the time since the last totals."""
        self._resumed = time.monotonic()

    def has_evaluation(self, step: int) -> bool:
        """Tells whether a step was evaluated already, before the run was interrupted."""
        return self._metrics.path.exists() and any(
            record["kind"] == "eval" and record["step"] == step
            for record in read_metrics(self._metrics.path))

    def on_eval(self, results: Mapping[str, float]) -> None:
        """Reports an evaluation."""
        record = {"kind": "eval", "step": self._step, **results}
        self._metrics.append(record)
        self._board.scalars(self._step, {f"eval/{name}": value for name, value in results.items()})
        self._board.flush()

    def on_samples(self, markdown: str) -> None:
        """Writes sample corruptions for TensorBoard."""
        self._board.text(self._step, "samples", markdown)
        self._board.flush()

    def _report_interval(self) -> None:
        means = {name: total / weight if weight else 0.0
                 for name, (total, weight) in self._totals.items()}
        seconds = max(self._timed_seconds, 1e-9)
        rate = self._timed_steps * self._tokens_per_step / seconds
        fraction, memory = self._peak_fraction(rate), _peak_memory_bytes()
        left = ((self._num_steps - self._step) * seconds / self._timed_steps
                if self._timed_steps else None)
        self.say(progress_line(Progress(
            step=self._step, num_steps=self._num_steps, loss=means["loss"],
            losses={name.removesuffix("_loss"): value for name, value in means.items()
                    if name.endswith("_loss")},
            learning_rate=means["learning_rate"], tokens_per_second=rate,
            peak_fraction=fraction, seconds_left=left,
            seconds_elapsed=time.monotonic() - self._started, peak_memory_bytes=memory)))
        machine = {"tokens_per_second": rate, "peak_memory_bytes": memory} | (
            {} if fraction is None else {"peak_fraction": fraction})
        self._metrics.append({"kind": "train", "step": self._step, **means, **machine})
        self._board.scalars(self._step, {f"train/{name}": value
                                         for name, value in (means | machine).items()})
        self._board.flush()
        self._totals, self._timed_steps, self._timed_seconds = {}, 0, 0.0


def _peak_memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Kibibytes elsewhere.
