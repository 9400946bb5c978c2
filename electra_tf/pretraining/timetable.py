"""The steps at which a run reads losses, saves, samples and evaluates."""

import dataclasses
from collections.abc import Collection

from electra_tf.config.runtime import RuntimeConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Timetable:
    """The events of a run, by the number of finished steps."""

    first_step: int
    """Step from which this process continues."""
    num_steps: int
    """Steps of the whole run."""
    runtime: RuntimeConfig
    """Intervals of the events."""
    steps_per_loop: int = 1
    """Most steps of one loop on the devices."""

    def steps_in_one_go(self, step: int, turns: Collection[int] = ()) -> int:
        """Returns the number of steps until the next event or the next step of `turns`."""
        count = 1
        while (count < self.steps_per_loop and not self.reads(step + count)
               and step + count not in turns):
            count += 1
        return count

    def reads(self, step: int) -> bool:
        """Tells whether losses are read from the devices, which then wait.

        The first read times the compilation. A read before every other event keeps the result of
        a bad step out of checkpoints.
        """
        return (step == self.first_step + 1 or self.records(step) or self.samples(step)
                or self.evaluates(step))

    def records(self, step: int) -> bool:
        """Tells whether an interval of metrics.jsonl ends, as at every checkpoint."""
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
        """Returns the number of future events of each kind, by `Loop`'s names."""
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
