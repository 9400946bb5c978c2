"""A model of two narrow layers on `tiny_records`, and a step of it under any strategy."""

from pathlib import Path

import tensorflow as tf

from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig, pretraining_config
from electra_tf.data.pipeline import training_batches
from electra_tf.pretraining.run import Run, prepare_run
from electra_tf.training.step import TrainState, TrainStep

SETTINGS = {
    "model.embedding_size": 16, "model.hidden_size": 32, "model.intermediate_size": 64,
    "model.max_position_embeddings": 32, "training.train_batch_size": 8,
    "training.num_train_steps": 12, "training.precision": "float32",
    "model.hidden_dropout": 0.1, "model.attention_dropout": 0.1,
    "optimizer.learning_rate": 3e-3, "optimizer.warmup_steps": 0,
}
FLAGS = [f"--set={name}={value}" for name, value in SETTINGS.items()]
OFTEN = ("--model_size=tiny", "--distribution_strategy=one_device", "--save_checkpoints_steps=2",
         "--log_every_steps=2", "--sample_every_steps=0", "--eval_steps=1",
         "--set=runtime.cpu_parts=1")
"""A run of some steps that is saved and logged every other one."""


def config(**changes) -> PretrainingConfig:
    """The tiny settings, for any number of cores; `section__field=value` changes one."""
    return override(pretraining_config("tiny"), SETTINGS | {"runtime.cpu_parts": 1} | {
        name.replace("__", "."): value for name, value in changes.items()})


def run_on(records: Path, model_dir: Path = Path("unused"), **changes) -> Run:
    return prepare_run(config(**changes), records, model_dir)


def batches(run: Run, steps: int, context: tf.distribute.InputContext | None = None):
    """The first global batches of a run, or a worker's part of them."""
    return training_batches(
        run.records, pad_id=0, seed=1, buffer_examples=1000, global_batch_size=8, first_step=0,
        last_step=steps, input_context=context or tf.distribute.InputContext())


def state_of(run: Run) -> TrainState:
    return TrainState(run.config, run.build_model(), run.strategy)


def train_step(run: Run, state: TrainState, *, xla: bool = False) -> TrainStep:
    config = override(run.config, {"runtime.xla": "on" if xla else "off"})
    return TrainStep(config, run.objective, state, run.strategy,
                     config.training.num_train_steps)


def step_function(run: Run, state: TrainState, *, xla: bool = False):
    """Returns a compiled function from a batch, per replica, to the step's results."""
    step = train_step(run, state, xla=xla)

    return tf.function(lambda batch: step(batch), autograph=False)


def weights(state: TrainState) -> dict:
    return {variable.name: variable.numpy() for variable in state.model.trainable_variables}
