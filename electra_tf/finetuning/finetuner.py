"""Runs a trial: batches of rows of similar length, and a compiled step for each length."""

import dataclasses
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row, RowBatch, bucket_lengths, make_batch, plan_epoch
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import Objective
from electra_tf.platform.errors import UserError
from electra_tf.training.step import build_state, build_step

_LAYER = re.compile(r"/encoder/layer_(\d+)/")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """The settings, the objective and the devices of a trial."""

    config: FinetuningConfig
    objective: Objective
    strategy: tf.distribute.Strategy
    pad_id: int

    def lengths_for(self, rows: Sequence[Row]) -> tuple[int, ...]:
        """Returns the lengths, in tokens, to which batches are padded; each compiles a step."""
        return bucket_lengths([len(row.ids) for row in rows], self.config.task.max_seq_length)

    def distributed(self, batch: RowBatch) -> Any:
        """Returns a batch of B rows as tensors: B / replicas rows for each replica."""
        replicas = self.strategy.num_replicas_in_sync

        def share(context: Any) -> RowBatch:
            mine = context.replica_id_in_sync_group
            return tf.nest.map_structure(
                lambda whole: tf.constant(np.split(whole, replicas)[mine]), batch)

        return self.strategy.experimental_distribute_values_from_function(share)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
    """The steps between two reports."""

    step: int
    """Number of the last step; steps and epochs count from 1."""
    epoch: int
    loss: float
    """Mean over the steps."""
    ends_epoch: bool
    passing: bool = False
    """True if only time ended the interval; the next one includes its steps."""


class ByLength:
    """A function of a batch that is compiled once per length of rows."""

    def __init__(self, function: Callable[[Any], Any]):
        self._function = tf.function(function, autograph=False)
        self._compiled: dict[int, Callable[[Any], Any]] = {}

    def __call__(self, length: int, batch: Any) -> Any:
        """Calls the function with a batch whose rows have `length` tokens."""
        if length not in self._compiled:
            # Concrete functions avoid TensorFlow's warning about frequent retracing.
            self._compiled[length] = self._function.get_concrete_function(batch)
        return self._compiled[length](batch)


class Finetuner:
    """The training of one model over its epochs, in intervals that the caller iterates over."""

    def __init__(self, settings: TrialSettings, model: TaskNetwork, rows: Sequence[Row], *,
                 seed: int, clock: Callable[[], float] = time.monotonic):
        """Takes a model with its initial weights; `seed` determines order and dropout."""
        config = override(settings.config, {"training.seed": seed})
        self.num_steps = config.num_train_steps(len(rows))
        self.model = model
        self._settings, self._rows = settings, rows
        self._seed, self._clock = seed, clock
        self.state = build_state(config, model, settings.strategy, rate_factors(
            (variable.name for variable in model.trainable_variables),
            num_layers=config.model.num_layers, decay=config.optimizer.layerwise_decay,
            skip_first=config.optimizer.layerwise_decay_skips_one))
        self._step = build_step(
            config, settings.objective, self.state, settings.strategy, self.num_steps)
        self._compiled = ByLength(self._replicas_step)

    def epochs(self) -> Iterator[Interval]:
        """Trains, and yields every interval; `UserError` if a loss is not finite."""
        runtime = self._step.config.runtime
        every, seconds = runtime.log_interval(self.num_steps), runtime.log_every_seconds
        size = self._step.config.training.train_batch_size
        lengths = [len(row.ids) for row in self._rows]
        padded_to = self._settings.lengths_for(self._rows)
        epoch, shown = 0, self._clock()
        while (done := int(self.state.step.numpy())) < self.num_steps:
            losses = []
            plan = plan_epoch(lengths, size, seed=self._seed, epoch=epoch)[:self.num_steps - done]
            epoch += 1
            for number, indices in enumerate(plan, start=1):
                batch = make_batch([self._rows[index] for index in indices], size, padded_to,
                                   self._settings.pad_id)
                results = self._compiled(batch.ids.shape[1], self._settings.distributed(batch))
                losses.append(results["loss"])
                ends = number == len(plan)
                due = ends or (done + number) % every == 0
                if due or 0 < seconds <= self._clock() - shown:
                    loss = float(np.mean([one.sum.numpy() / one.weight.numpy() for one in losses]))
                    if not np.isfinite(loss):
                        raise UserError(f"the loss is not finite in epoch {epoch}. Try a lower "
                                        "--learning_rate, or --precision=float32, in a new "
                                        "--model_dir.")
                    yield Interval(step=done + number, epoch=epoch, ends_epoch=ends, loss=loss,
                                   passing=not due)
                    shown = self._clock()
                    losses = [] if due else losses

    def _replicas_step(self, batch: RowBatch) -> Mapping[str, Any]:
        results = self._settings.strategy.run(self._step, args=(batch,))
        return tf.nest.map_structure(
            lambda value: self._settings.strategy.experimental_local_results(value)[0], results)


def rate_factors(paths: Iterable[str], *, num_layers: int, decay: float,
                 skip_first: bool = False) -> list[float]:
    """Returns the factor of each weight's learning rate: decay ** depth (ELECTRA, appendix B).

    Weights outside the encoder have depth 0, the last of `num_layers` layers 1, the first
    `num_layers`, and the embeddings one more. `skip_first` adds 1 to all depths but the head's, as
    in Google's code, which measured the published scores (its issues 51 and 64).
    `paths` are full names such as "electra/encoder/layer_0/output/dense/bias".
    """
    def depth(path: str) -> int:
        if not path.startswith("electra/"):
            return 0
        match = _LAYER.search(path)
        found = num_layers - int(match.group(1)) if match else num_layers + 1
        if found < 1:
            raise ValueError(f"{path} is beyond the encoder's {num_layers} layers")
        return found + skip_first

    return [decay ** depth(path) for path in paths]
