"""Computes predictions of a fine-tuned model for rows, on one CPU or on replicas."""

import concurrent.futures
import contextlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.data.buckets import Row, RowBatch, make_batch, plan_in_order_of_length
from electra_tf.finetuning.finetuner import ByLength, TrialSettings
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.tasks.kinds.kind import RowResults
from electra_tf.training.devices import device_type
from electra_tf.training.strategies import NO_REWRITING

Plan = Sequence[np.ndarray]
"""Indices of the rows of every batch."""


class Predictor:
    """A model that returns the details of its objective for rows."""

    def __init__(self, settings: TrialSettings, model: TaskNetwork):
        self._batch_size = settings.config.runtime.eval_batch_size
        runner = _OneCpu if runs_on_one_cpu(settings.strategy) else _Replicas
        self._runner = runner(settings, model)

    def predict(self, rows: Sequence[Row],
                progress: Callable[[float], None] = lambda done: None) -> list[RowResults]:
        """Returns the objective's details of every row, in the rows' order.

        Details with a value per token have the length of the padded row. `progress` is called after
        every batch with the fraction of tokens that are done.
        """
        lengths = np.array([len(row.ids) for row in rows])
        plan = plan_in_order_of_length(lengths, self._batch_size)
        found: list[RowResults] = [{} for _ in rows]
        done = 0
        for indices, results in zip(plan, self._runner.run(rows, plan), strict=True):
            for place, index in enumerate(indices):
                found[index] = {name: value[place] for name, value in results.items()}
            done += lengths[indices].sum()
            progress(done / lengths.sum())
        return found


def runs_on_one_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Returns True for a strategy whose only device is a CPU."""
    return strategy.num_replicas_in_sync == 1 and device_type(strategy) == "CPU"


class _OneCpu:
    """A runner on one CPU: one graph for all lengths, and one batch per core at a time."""

    def __init__(self, settings: TrialSettings, model: TaskNetwork):
        self._settings, self._model = settings, model
        dtype = tf.bfloat16 if model.compute_dtype == "bfloat16" else tf.float32
        self._encoder = InferenceEncoder(model.encoder, dtype)
        self._traced: Callable[[RowBatch], Mapping[str, tf.Tensor]] | None = None

    def run(self, rows: Sequence[Row], plan: Plan) -> Iterable[Mapping[str, np.ndarray]]:
        """Yields the outputs of every batch of a plan."""
        self._encoder.assign(self._model.encoder)
        batches = (self._batch([rows[index] for index in indices]) for indices in plan)
        cores = max(1, self._settings.config.runtime.cpu_parts)
        with _graph_rewriting(), concurrent.futures.ThreadPoolExecutor(cores) as pool:
            if self._traced is None:  # For batches of any size.
                self._traced = tf.function(self._details, autograph=False).get_concrete_function(
                    tf.nest.map_structure(
                        lambda value: tf.TensorSpec([None] * value.shape.rank, value.dtype),
                        self._batch(rows[:1])))
            yield from pool.map(lambda batch: _arrays(self._traced(batch)), batches)

    def _batch(self, rows: Sequence[Row]) -> RowBatch:
        """Pads rows to the longest of them, as tensors."""
        return tf.nest.map_structure(tf.constant, make_batch(
            rows, len(rows), [max(len(row.ids) for row in rows)], self._settings.pad_id))

    def _details(self, batch: RowBatch) -> Mapping[str, tf.Tensor]:
        model = types.SimpleNamespace(encoder=self._encoder, head=self._model.head)
        with inference_mode():
            return _details(self._settings, model, batch)


@contextlib.contextmanager
def _graph_rewriting() -> Iterator[None]:
    """Enables TensorFlow's graph rewriting, on which the speed of `InferenceEncoder` depends."""
    before = tf.config.optimizer.get_experimental_options().get(NO_REWRITING, False)
    tf.config.optimizer.set_experimental_options({NO_REWRITING: False})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({NO_REWRITING: before})


class _Replicas:
    """A runner on replicas, which share batches of a few static shapes, each compiled once."""

    def __init__(self, settings: TrialSettings, model: TaskNetwork):
        self._settings, self._model = settings, model
        self._compiled = ByLength(self._replicas_batch)
        self._padded_to: tuple[int, ...] = ()

    def run(self, rows: Sequence[Row], plan: Plan) -> Iterable[Mapping[str, np.ndarray]]:
        """Yields the outputs of every batch of a plan."""
        settings = self._settings
        replicas = settings.strategy.num_replicas_in_sync
        size = -(-settings.config.runtime.eval_batch_size // replicas) * replicas
        self._padded_to = self._padded_to or settings.lengths_for(rows)
        for indices in plan:
            batch = make_batch([rows[index] for index in indices], size, self._padded_to,
                               settings.pad_id)
            yield _arrays(self._compiled(batch.ids.shape[1], settings.distributed(batch)))

    def _replicas_batch(self, batch: RowBatch) -> Mapping[str, tf.Tensor]:
        strategy = self._settings.strategy
        results = strategy.run(lambda part: _details(self._settings, self._model, part), (batch,))
        return {name: strategy.gather(value, axis=0) for name, value in results.items()}


def _details(settings: TrialSettings, model: Any, batch: RowBatch) -> Mapping[str, tf.Tensor]:
    zero = tf.constant(0, tf.int64)
    nothing_drawn = Randomness(seed=0, step=zero, first_example=zero)
    return settings.objective.compute(model, batch, nothing_drawn, training=False).details


def _arrays(tensors: Mapping[str, tf.Tensor]) -> Mapping[str, np.ndarray]:
    return {name: value.numpy() for name, value in tensors.items()}
