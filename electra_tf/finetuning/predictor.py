"""Computes predictions of a fine-tuned model for rows, on one CPU or on replicas."""

import concurrent.futures
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.config.runtime import Precision
from electra_tf.data.buckets import Row, RowBatch, make_batch, plan_in_order_of_length
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.tasks.kinds.base import RowResults
from electra_tf.training.devices import POLICIES, device_type
from electra_tf.training.strategies import NO_REWRITING

BatchOutput = Mapping[str, tf.Tensor]
"""The objective's details of a batch, by name."""


class CompiledByShape:
    """A function of a batch that is compiled once per shape of its examples."""

    def __init__(self, function: Callable[[Any], Any]):
        self._function = tf.function(function, autograph=False)
        self._compiled: dict[tuple[int, ...], Callable[[Any], Any]] = {}

    def __call__(self, shape: tuple[int, ...], batch: Any) -> Any:
        """Calls the function with a batch whose ids have this shape."""
        if shape not in self._compiled:
            # Concrete functions avoid TensorFlow's warning about frequent retracing.
            self._compiled[shape] = self._function.get_concrete_function(batch)
        return self._compiled[shape](batch)


class Predictor:
    """A model that returns the details of its objective for rows, in the run's precision."""

    def __init__(self, run: FinetuningRun, model: TaskNetwork):
        self._run, self._model = run, model
        precision = run.config.training.precision
        self._on_one_cpu = (
            run.strategy.num_replicas_in_sync == 1 and device_type(run.strategy) == "CPU")
        if self._on_one_cpu:
            dtype = tf.bfloat16 if precision is Precision.BFLOAT16 else tf.float32
            self._encoder = InferenceEncoder(model.encoder, dtype)
            self._traced: Callable[[RowBatch], BatchOutput] | None = None
        else:
            is_same = model.dtype_policy.name == POLICIES[precision]
            self._network = model if is_same else run.build_model(seed=0)
            self._padded_lengths: tuple[int, ...] = ()
            self._compiled = CompiledByShape(self._gathered_details)

    def predict(self, rows: Sequence[Row],
                progress: Callable[[float], None] = lambda done: None) -> list[RowResults]:
        """Returns the objective's details of every row, in the rows' order.

        Details with a value per token have the length of the padded row. `progress` is called after
        every batch with the fraction of tokens that are done.
        """
        lengths = np.array([row.ids.size for row in rows])
        plan = plan_in_order_of_length(lengths, self._run.config.runtime.eval_batch_size)
        batches = (self._on_cores if self._on_one_cpu else self._on_replicas)(rows, plan)
        row_results: list[RowResults] = [{} for _ in rows]
        num_done = 0
        for indices, per_example in zip(plan, batches, strict=True):
            arrays = {name: tensor.numpy() for name, tensor in per_example.items()}
            for position, index in enumerate(indices):
                row_results[index] = {name: values[position] for name, values in arrays.items()}
            num_done += lengths[indices].sum()
            progress(num_done / lengths.sum())
        return row_results

    def _on_cores(self, rows: Sequence[Row],
                  plan: Sequence[np.ndarray]) -> Iterator[BatchOutput]:
        """Yields details of batches: one graph for all lengths, a batch per core at a time."""
        self._encoder.assign(self._model.encoder)
        pad_id = self._run.text.vocabulary.pad_id

        def padded(indices: Sequence[int]) -> RowBatch:
            part = [rows[index] for index in indices]
            return tf.nest.map_structure(tf.constant, make_batch(
                part, len(part), [max(row.ids.shape[-1] for row in part)], pad_id))

        def per_example(batch: RowBatch) -> BatchOutput:
            with inference_mode():
                return self._details(types.SimpleNamespace(
                    encoder=self._encoder, head=self._model.head), batch)

        cores = max(1, self._run.config.runtime.cpu_parts)
        is_disabled = tf.config.optimizer.get_experimental_options().get(NO_REWRITING, False)
        # The speed of `InferenceEncoder` depends on TensorFlow's graph rewriting.
        tf.config.optimizer.set_experimental_options({NO_REWRITING: False})
        try:
            if self._traced is None:  # For batches of any size.
                self._traced = tf.function(per_example, autograph=False).get_concrete_function(
                    tf.nest.map_structure(
                        lambda value: tf.TensorSpec([None] * value.shape.rank, value.dtype),
                        padded([0])))
            with concurrent.futures.ThreadPoolExecutor(cores) as pool:
                yield from pool.map(self._traced, map(padded, plan))
        finally:
            tf.config.optimizer.set_experimental_options({NO_REWRITING: is_disabled})

    def _on_replicas(self, rows: Sequence[Row],
                     plan: Sequence[np.ndarray]) -> Iterator[BatchOutput]:
        """Yields details of batches of a few static shapes, which replicas share."""
        run = self._run
        if self._network is not self._model:
            self._network.set_weights(self._model.get_weights())
        replicas = run.strategy.num_replicas_in_sync
        size = -(-run.config.runtime.eval_batch_size // replicas) * replicas
        self._padded_lengths = self._padded_lengths or run.padded_lengths(rows)
        for indices in plan:
            batch = make_batch([rows[index] for index in indices], size, self._padded_lengths,
                               run.text.vocabulary.pad_id)
            yield self._compiled(batch.ids.shape, run.distributed(batch))

    def _gathered_details(self, batch: RowBatch) -> BatchOutput:
        strategy = self._run.strategy
        results = strategy.run(lambda part: self._details(self._network, part), (batch,))
        return {name: strategy.gather(value, axis=0) for name, value in results.items()}

    def _details(self, model: Any, batch: RowBatch) -> BatchOutput:
        zero = tf.constant(0, tf.int64)
        rng = Rng(seed=0, step=zero, first_example=zero)  # Draws nothing.
        return self._run.objective.compute(model, batch, rng, training=False).per_example
