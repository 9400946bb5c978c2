"""Fits the number of steps to a time, from the speed of a run's first steps on this machine."""

import dataclasses
import tempfile
import time
from typing import NamedTuple

from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.pretraining.multi_worker import has_several_workers
from electra_tf.pretraining.run import Run
from electra_tf.pretraining.steps import StepMetrics, compile_steps, steps_per_loop
from electra_tf.training.devices import distributed, temporary_variables
from electra_tf.training.step import TrainState, TrainStep

MAX_STEPS = 10**8
WARM_UP_SECONDS, MEASURED_SECONDS = 4.0, 12.0
"""A small network's first 100 steps have two thirds of its later speed."""
MEASURED_BATCHES = 100  # Batches that are read again and again; a real run reads each once.
SPARE, END_SECONDS = 0.02, 5.0
"""Fraction of the time for checkpoints and samples, and duration of the last curves."""


class Speed(NamedTuple):
    """The durations of a run's parts in seconds."""

    start: float  # From the networks' creation to the end of the first step.
    step: float  # A later step.


def measure(run: Run) -> Speed:
    """Trains new networks for 16 s and discards them; returns the speed."""
    # A training loop over a few batches.
    config, strategy, begin = run.config, run.strategy, time.monotonic()
    if has_several_workers(strategy):
        raise UserError("--budget measures one process; give all workers --num_train_steps.")

    # The run's networks and compiled step, on its first batches, again and again. Word vectors are
    # counted as at the run's start, since a short run notices the seconds.
    with temporary_variables(), tempfile.TemporaryDirectory() as directory:
        measured = dataclasses.replace(run, model_dir=storage.path(directory))
        state = TrainState(config, measured.build_model(is_new=run.initial is None),
                           strategy)
        batches = distributed(strategy, lambda input_context: run.batches(
            0, MEASURED_BATCHES, input_context).repeat())
        count = steps_per_loop(config.runtime, strategy)
        train_steps = compile_steps(
            TrainStep(config, run.objective, state, strategy, MAX_STEPS), batches,
            in_loops=count > 1)
        metrics = StepMetrics()

        # Compilation, warm-up, measurement. Every call waits for its steps: the clock counts what
        # the devices have finished.
        def train_for(seconds: float) -> float:
            begin, steps = time.monotonic(), 0
            while not steps or time.monotonic() - begin < seconds:
                metrics.update(train_steps(count))
                steps += count
                metrics.pop(steps)
            return (time.monotonic() - begin) / steps

        # The first step includes tracing; the next seconds are slower than the rest of a run.
        train_for(0.0)
        start = time.monotonic() - begin
        train_for(WARM_UP_SECONDS)
        return Speed(start=start, step=train_for(MEASURED_SECONDS))


def steps_within(run: Run, speed: Speed, seconds: float) -> int:
    """Returns the steps of a run that ends within `seconds`, its evaluations included.

    An example of an evaluation takes no longer than one of training.
    """
    # An evaluation's examples, in steps of training.
    runtime, batch = run.config.runtime, run.config.training.train_batch_size
    evaluation = 0.0
    if held_out := run.examples("eval"):
        examples = runtime.eval_steps * runtime.eval_batch_size or held_out
        evaluation = min(examples, held_out) / batch * speed.step

    # The last evaluation is subtracted, the regular ones make every step longer.
    available = (1 - SPARE) * (seconds - speed.start - END_SECONDS - evaluation)
    if runtime.eval_every_steps:
        speed = speed._replace(step=speed.step + evaluation / runtime.eval_every_steps)
    return min(MAX_STEPS, max(1, int(available / speed.step)))
