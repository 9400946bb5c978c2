"""Runs this project's training step as `run_pretraining.py` does."""

import numpy as np
import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.cases import case_of
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.pretraining import ObjectiveContext
from electra_tf.pretraining.steps import compile_steps
from electra_tf.training.devices import create_strategy, prepare_cpu, use_xla
from electra_tf.training.step import build_model, build_state, build_step

_SPECIAL = SpecialTokens(
    pad=plain.PAD_ID, cls=plain.CLS_ID, sep=plain.SEP_ID, mask=plain.MASK_ID)


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the step with the case's settings, "auto" resolved for this machine."""
    config = case_of(workload.case).config(setting)
    parts = prepare_cpu(config.runtime, workload.batch)
    config = override(config, {"runtime.cpu_parts": parts})
    strategy = create_strategy(config.runtime)
    xla = use_xla(config.runtime.xla, strategy)
    return Ready(
        label=f"{setting.precision}, XLA {'on' if xla else 'off'}",
        versions={"TensorFlow": tf.__version__},
        turn=steps_of(lambda: _build(workload, config, strategy)))


def _build(workload: Workload, config: PretrainingConfig,
           strategy: tf.distribute.Strategy) -> Step:
    """Builds model, state and loop of a pre-training run."""
    size = config.model.vocab_size
    kinds = TokenKinds(_SPECIAL, size, np.zeros(size, bool))
    objective = objective_class(config.objective.name)(
        config, ObjectiveContext(kinds=kinds, token_counts=lambda: np.ones(size, np.int64)))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    state = build_state(config, model, strategy)
    step = build_step(config, objective, state, strategy, config.training.num_train_steps)
    run_steps = compile_steps(
        strategy, step, strategy.experimental_distribute_dataset(_batches(workload)))
    return lambda: float(run_steps(1)[0]["loss"].sum)


def _batches(workload: Workload) -> tf.data.Dataset:
    """Repeats synthetic text: `Batch` of [B, L] rows without padding, one segment."""
    shape = [plain.BATCHES, workload.batch, workload.length]
    ids = tf.random.stateless_uniform(
        shape, [1, 2], plain.FIRST_WORD_ID, workload.vocab_size, tf.int32)
    text = Batch(ids=ids, valid=tf.ones(shape, tf.bool), segment_ids=tf.zeros(shape, tf.int32))
    return tf.data.Dataset.from_tensor_slices(text).repeat()


if __name__ == "__main__":
    serve(prepare)
