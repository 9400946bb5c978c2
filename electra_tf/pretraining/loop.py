"""The loop of pre-training, from the restored step to the last step or a signal."""

import dataclasses
import signal
from collections.abc import Callable, Mapping

from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.platform.signals import STOPPING, StopRequest
from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.results import HeldOut
from electra_tf.pretraining.timetable import Timetable
from electra_tf.pretraining.trainer import Trainer
from electra_tf.training.workers import Agreement


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loop:
    """The parts that the loop calls."""

    timetable: Timetable
    trainer: Trainer
    manager: CheckpointManager
    reporter: Reporter
    held_out: HeldOut | None
    """None if nothing was held out."""
    request: StopRequest
    workers: Agreement
    turns: Mapping[int, Callable[[], None]] = dataclasses.field(default_factory=dict)
    """Hooks that change weights, by the step that they precede."""

    def run(self) -> signal.Signals | None:
        """Trains; reads losses only where needed, so that the devices don't wait.

        Returns:
            The signal that ended the run early, after a checkpoint; None if the run is finished.

        Raises:
            UserError: a loss isn't finite, or something can't be written.
        """
        table, step = self.timetable, self.timetable.first_step
        stopped = self._evaluate(step) if table.evaluates(step) else None
        while step < table.num_steps and not stopped:
            if step in self.turns:
                self.turns[step]()
            count = table.steps_in_one_go(step, self.turns)
            self.trainer.run(count)
            step += count
            stopped = self._stopped()
            if stopped or table.reads(step) or self.reporter.line_is_due():
                self.reporter.on_train(self.trainer.totals(), step,
                                       complete=bool(stopped) or table.records(step))
            if table.samples(step) and not stopped:
                self._sample()
            if table.saves(step) or stopped:
                self.manager.save(step, check_interval=False)
                self.reporter.on_checkpoint(step)
            if table.evaluates(step) and not stopped:
                stopped = self._evaluate(step)
        return stopped

    def _stopped(self) -> signal.Signals | None:
        """Returns the signal that any worker received, the same one on all workers."""
        received = self.workers.any([self.request.number == number for number in STOPPING])
        return max((number for number, came in zip(STOPPING, received, strict=True) if came),
                   default=None)

    def _sample(self) -> None:
        if self.held_out is not None:
            self.reporter.on_samples(self.held_out.samples())
            self.reporter.aside("samples")

    def _evaluate(self, step: int) -> signal.Signals | None:
        """Evaluates, unless that was done before the run was interrupted; returns as `run`."""
        # Only the chief has the log.
        if self.held_out is None or self.workers.any([self.reporter.has_evaluation(step)])[0]:
            return None
        stopped = None

        def go_on(batches: int) -> bool:
            nonlocal stopped
            self.reporter.on_evaluated(batches)
            stopped = self._stopped()
            return not stopped

        results = self.held_out.evaluate(go_on)
        if results is None:
            return stopped
        self.reporter.on_eval(results)
        self.held_out.report(results, step)
        self.reporter.aside("evaluation")
        return None
