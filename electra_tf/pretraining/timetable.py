"""At which steps of a run something happens besides training."""

import dataclasses
from collections.abc import Collection

from electra_tf.config.runtime import RuntimeConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timetable:
    """Answers for a number of finished steps; the last step is always one of them."""

    first_step: int
    """That this process continues from."""
    num_steps: int
    """Of the whole run."""
    runtime: RuntimeConfig
    """Its intervals."""

    steps_per_loop: int = 1
    """Most steps that the devices run before anybody asks what happened."""

    def steps_in_one_go(self, step: int, turns: Collection[int] = ()) -> int:
        """Returns how many steps after `step` come before anything else has to be done.

        Args:
            step: finished steps.
            turns: steps before which something happens that isn't in this table.
        """
        count = 1
        while (count < self.steps_per_loop and not self.reads(step + count)
               and step + count not in turns):
            count += 1
        return count

    def reads(self, step: int) -> bool:
        """Tells whether losses are read from the devices, which then wait.

        They are after the first step, so that its compilation can be timed apart, and before
        anything else happens, so that no checkpoint holds what a bad step left.
        """
        return (step == self.first_step + 1 or self.records(step) or self.samples(step)
                or self.evaluates(step))

    def records(self, step: int) -> bool:
        """Tells whether an interval of metrics.jsonl ends.

        It does at every checkpoint, so that a run that is killed and resumed reports the same.
        """
        return self.saves(step) or step % self.runtime.log_every_steps == 0

    def saves(self, step: int) -> bool:
        """Tells whether a checkpoint is due."""
        return step == self.num_steps or step % self.runtime.save_checkpoints_steps == 0

    def samples(self, step: int) -> bool:
        """Tells whether sample corruptions are due."""
        every = self.runtime.sample_every_steps
        return bool(every) and step % every == 0

    def evaluates(self, step: int) -> bool:
        """Tells whether an evaluation is due."""
        every = self.runtime.eval_every_steps
        return step == self.num_steps or (bool(every) and step > 0 and step % every == 0)

    def to_come(self, step: int) -> dict[str, int]:
        """Returns how often each of these is due after a step, by the names that `Loop` gives."""
        runtime = self.runtime

        def times(every: int) -> int:
            return self.num_steps // every - step // every if every else 0

        last = step < self.num_steps
        return {
            "checkpoint": times(runtime.save_checkpoints_steps) + (
                last and self.num_steps % runtime.save_checkpoints_steps != 0),
            "samples": times(runtime.sample_every_steps),
            "evaluation": times(runtime.eval_every_steps) + (last and (
                not runtime.eval_every_steps or self.num_steps % runtime.eval_every_steps != 0)),
        }
