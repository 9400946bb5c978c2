"""One trial of fine-tuning: rows in batches of similar length, steps, and predictions in order."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.command_line import UserError
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.distribution.cores import largest_divisor
from electra_tf.distribution.devices import use_xla
from electra_tf.input.buckets import (
    Row,
    RowBatch,
    bucket_lengths,
    make_batch,
    plan_epoch,
    plan_in_order_of_length,
)
from electra_tf.modeling.electra import TaskModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Objective
from electra_tf.optimization.adam import Adam
from electra_tf.optimization.layer_rates import rate_factors
from electra_tf.optimization.loss_scale import LossScale
from electra_tf.optimization.schedule import Schedule
from electra_tf.training.parts import joined
from electra_tf.training.step import TrainState, TrainStep

RowResults = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What a trial needs to know besides its rows."""

    config: FinetuningConfig
    """With nothing left to choose automatically."""
    objective: Objective
    strategy: tf.distribute.Strategy
    pad_id: int

    def make_batch(self, rows: Sequence[Row], batch_size: int) -> RowBatch:
        """Pads rows to one of the lengths that are compiled for."""
        return make_batch(rows, batch_size, bucket_lengths(self.config.task.max_seq_length),
                          self.pad_id)

    def distributed(self, batch: RowBatch) -> Any:
        """Gives every replica its rows, as tensors."""
        replicas = self.strategy.num_replicas_in_sync

        def share(context: Any) -> RowBatch:
            mine = context.replica_id_in_sync_group
            return tf.nest.map_structure(
                lambda whole: tf.constant(np.split(whole, replicas)[mine]), batch)

        return self.strategy.experimental_distribute_values_from_function(share)


class Finetuner:
    """Runs a model through its epochs; the caller decides after each whether to go on."""

    def __init__(self, settings: TrialSettings, model: TaskModel, rows: Sequence[Row], *,
                 seed: int):
        """Prepares the optimizer.

        Args:
            settings: what to do.
            model: with the weights to begin with; frozen layers aren't trainable.
            rows: to train on, at least 1.
            seed: of the trial: order and dropout.
        """
        config = settings.config
        config = dataclasses.replace(
            config, training=dataclasses.replace(config.training, seed=seed))
        self.num_steps = config.num_train_steps(len(rows))
        self.model = model
        self._settings, self._rows = settings, rows
        self._seed = seed
        variables = model.trainable_variables
        with settings.strategy.scope():
            self.state = TrainState(
                model, Adam(config.optimizer, variables, rate_factors(
                    (variable.name for variable in variables),
                    num_layers=config.model.num_layers, decay=config.optimizer.layerwise_decay,
                    skip_first=config.optimizer.layerwise_decay_skips_one)),
                LossScale(enabled=False))
        self._step = TrainStep(
            config=config, objective=settings.objective, state=self.state,
            schedule=Schedule.of(config.optimizer, self.num_steps),
            compile_with_xla=use_xla(config.runtime.xla, settings.strategy))
        self._run = tf.function(self._replicas_step, autograph=False)

    def epochs(self) -> Iterator[float]:
        """Trains; yields the mean training loss after every epoch, the last one perhaps shorter.

        Raises:
            UserError: the loss isn't finite.
        """
        size = self._step.config.training.train_batch_size
        lengths = [len(row.ids) for row in self._rows]
        epoch = 0
        while (done := int(self.state.step.numpy())) < self.num_steps:
            losses = []
            for indices in plan_epoch(lengths, size, seed=self._seed, epoch=epoch)[
                    :self.num_steps - done]:
                batch = self._settings.make_batch([self._rows[index] for index in indices], size)
                losses.append(self._run(self._settings.distributed(batch))["loss"])
            mean = float(np.mean([loss.sum.numpy() for loss in losses]))
            if not np.isfinite(mean):
                raise UserError(f"the loss is not finite in epoch {epoch + 1}. Try a lower "
                                "--learning_rate, or --precision=float32.")
            epoch += 1
            yield mean

    def _replicas_step(self, batch: RowBatch) -> Mapping[str, Any]:
        results = self._settings.strategy.run(self._step, args=(batch,))
        return tf.nest.map_structure(
            lambda value: self._settings.strategy.experimental_local_results(value)[0], results)


class Predictor:
    """Runs a model over rows and returns what its objective says of each."""

    def __init__(self, settings: TrialSettings, model: TaskModel):
        self._settings = settings
        self._model = model
        self._run = tf.function(self._replicas_batch, autograph=False)

    def predict(self, rows: Sequence[Row]) -> list[RowResults]:
        """Returns the objective's details of every row, in the rows' order.

        What has one value per token is as long as the padded row.
        """
        config, strategy = self._settings.config, self._settings.strategy
        replicas = strategy.num_replicas_in_sync
        size = -(-config.runtime.eval_batch_size // replicas) * replicas
        found: list[RowResults] = [{} for _ in rows]
        for indices in plan_in_order_of_length([len(row.ids) for row in rows], size):
            batch = self._settings.make_batch([rows[index] for index in indices], size)
            results = {name: value.numpy() for name, value in self._run(
                self._settings.distributed(batch)).items()}
            for line, index in enumerate(indices):
                found[index] = {name: value[line] for name, value in results.items()}
        return found

    def _replicas_batch(self, batch: RowBatch) -> Mapping[str, tf.Tensor]:
        results = self._settings.strategy.run(self._replica_batch, args=(batch,))
        return {name: self._settings.strategy.gather(value, axis=0)
                for name, value in results.items()}

    def _replica_batch(self, batch: RowBatch) -> Mapping[str, tf.Tensor]:
        zero = tf.constant(0, tf.int64)
        unused = Randomness(seed=0, step=zero, first_example=zero)  # Nothing is drawn.
        rows = batch.ids.shape[0]
        parts = largest_divisor(rows, max(1, self._settings.config.runtime.cpu_parts))
        return joined(lambda part, _first: self._settings.objective.compute(
            self._model, part, unused, training=False).details, batch, parts)
