"""Puts networks, optimizer and step together, for pre-training and fine-tuning."""

from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from electra_tf.config.runtime import Precision
from electra_tf.modeling.initialization import initialize
from electra_tf.objectives.objective import Objective
from electra_tf.training.adam import Adam, Lamb
from electra_tf.training.devices import POLICIES, use_xla
from electra_tf.training.schedule import Schedule
from electra_tf.training.step import LossScale, Settings, TrainState, TrainStep


def build_model(objective: Objective, config: Settings, strategy: tf.distribute.Strategy, *,
                seed: int) -> tf_keras.Model:
    """Creates an objective's networks on the devices, with their initial weights."""
    with strategy.scope():
        model = objective.build_model(
            config.model, seed=seed, policy=POLICIES[config.training.precision],
            recompute=config.runtime.gradient_checkpointing)
        initialize(model, config.initialization)
    return model


def build_state(config: Settings, model: tf_keras.Model, strategy: tf.distribute.Strategy,
                rate_factors: Sequence[float] | None = None) -> TrainState:
    """Creates the state of training at step 0; `rate_factors` are those of `Adam`."""
    variables = model.trainable_variables
    with strategy.scope():
        kind = Lamb if config.optimizer.name == "lamb" else Adam
        optimizer = kind(config.optimizer, variables, rate_factors)
        return TrainState(model, optimizer,
                          LossScale(enabled=config.training.precision is Precision.FLOAT16))


def build_step(config: Settings, objective: Objective, state: TrainState,
               strategy: tf.distribute.Strategy, num_steps: int,
               finished_at: Sequence[int] = ()) -> TrainStep:
    """Creates the step of a run of `num_steps`; `finished_at` is that of `Schedule.of`."""
    return TrainStep(config=config, objective=objective, state=state,
                     schedule=Schedule.of(config.optimizer, num_steps, finished_at),
                     compile_with_xla=use_xla(config.runtime.xla, strategy))
