"""Runs this project's training step as `run_pretraining.py` does."""

import numpy as np
import tensorflow as tf

from benchmarks.pretraining import system
from benchmarks.pretraining.cases import config_of
from benchmarks.pretraining.system import Workload
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.objectives import pretraining
from electra_tf.pretraining.steps import compile_steps
from electra_tf.training.devices import build_model, use_xla
from electra_tf.training.step import TrainState, TrainStep
from electra_tf.training.strategies import create_strategy, prepare_cpu


def build(config: PretrainingConfig, strategy: tf.distribute.Strategy
          ) -> tuple[pretraining.PretrainingObjective, TrainState]:
    """Returns objective and initial state of a run without records and, if frozen, generator."""
    special = SpecialTokens(pad=system.PAD_ID, cls=system.CLS_ID, sep=system.SEP_ID,
                            mask=system.MASK_ID)
    generator = config.model.generator
    weights = {path: np.zeros(shape, np.float32) for path, shape in specs.language_model(
        "generator", generator, parameter_shapes.full_encoder(generator)).weights.items()}
    context = pretraining.ObjectiveContext.placeholder(
        config.model.vocab_size, special, pretraining.TrainedGenerator(generator, weights))
    objective = objective_class(config.objective.name)(config, context)
    model = build_model(objective, config, strategy, seed=config.training.seed,
                        cls_id=special.cls)
    return objective, TrainState(config, model, strategy)


def prepare(work: Workload, precision: str) -> system.Step:
    """Returns a step on synthetic text with the case's settings, "auto" resolved for this CPU."""
    config = config_of(work.case, precision, "auto")
    config = override(config, {"runtime.cpu_parts": prepare_cpu(config.runtime, work.batch)})
    strategy = create_strategy(config.runtime)
    objective, state = build(config, strategy)
    step = TrainStep(config, objective, state, strategy, config.training.num_train_steps)
    shape = [system.BATCHES, work.batch, work.length]
    ids = tf.random.stateless_uniform(
        shape, [1, 2], system.FIRST_WORD_ID, config.model.vocab_size, tf.int32)
    text = Batch(ids=ids, padding_mask=tf.ones(shape, tf.bool),
                 segment_ids=tf.zeros(shape, tf.int32))
    run_steps = compile_steps(step, strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(text).repeat()))
    xla = "on" if use_xla(config.runtime.xla, strategy) else "off"
    return lambda: {
        "loss": float(run_steps(1)["loss"].total), "label": f"electra_tf {precision}, XLA {xla}",
        "versions": {"TensorFlow": tf.__version__}}


if __name__ == "__main__":
    system.run(prepare)
