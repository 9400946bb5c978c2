"""The training step as a pure function in StableHLO: (batch, state) -> (results, new state).

The same step that `run_pretraining.py` runs, for one replica with the whole batch. A compiler
splits the batch over devices, which changes no draw: every draw is a function of the example's
index in the global batch.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.apps.stablehlo import dialect
from electra_tf.apps.stablehlo.artefact import (
    FORMAT_VERSION,
    STEP,
    Layout,
    LiftedStep,
    Reading,
    StateValue,
    Value,
)
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import Precision, PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import fused, weight_table
from electra_tf.modeling.masking import SpecialTokens, TokenKinds
from electra_tf.objectives.objective import Given, GivenGenerator, Objective
from electra_tf.objectives.registry import build_objective
from electra_tf.platform.errors import UserError
from electra_tf.training.assembly import build_model, build_state, build_step
from electra_tf.training.step import TrainState

LONGEST = 512
"""Tokens of an example without records and without a flag."""


def for_one_device(config: PretrainingConfig) -> PretrainingConfig:
    """Returns a run's settings as a lifted step has them: one replica, compiled from outside.

    Results don't change. Precision auto becomes bfloat16, which every TPU multiplies.
    """
    precision = config.training.precision
    return override(config, {
        "runtime.distribution_strategy": "one_device", "runtime.num_gpus": 0, "runtime.tpu": "",
        "runtime.cpu_parts": 1, "runtime.xla": "off",
        "training.precision":
            Precision.BFLOAT16 if precision is Precision.AUTO else precision})


def batch_spec(config: PretrainingConfig) -> Batch:
    """Returns the tensors of a global batch, [B, L]."""
    shape = [config.training.train_batch_size, config.data.max_seq_length]
    return Batch(ids=tf.TensorSpec(shape, tf.int32, "ids"),
                 valid=tf.TensorSpec(shape, tf.bool, "valid"),
                 segment_ids=tf.TensorSpec(shape, tf.int32, "segment_ids"))


def lift(config: PretrainingConfig, objective: Objective, state: TrainState,
         strategy: tf.distribute.Strategy, reading: Reading | None = None) -> LiftedStep:
    """Traces a step and writes it as StableHLO.

    Args:
        config: by `for_one_device`, with a length.
        objective: what it minimises.
        state: gives shapes; its values aren't looked at.
        strategy: the one device of `state`, a CPU.
        reading: of the records, if there are any.

    Raises:
        UserError: it has an op that StableHLO or XLA doesn't have.
    """
    step = build_step(config, objective, state, strategy, config.training.num_train_steps)
    spec = batch_spec(config)
    with fused.compiled_as_a_whole():
        function = tf.function(lambda *parts: strategy.run(step, args=(Batch(*parts),)),
                               jit_compile=True, autograph=False)
        concrete = function.get_concrete_function(*spec)
        text = function.experimental_get_compiler_ir(*spec)(stage="stablehlo", platform_name="CPU")
    module = dialect.portable(text)
    return LiftedStep(module=module, layout=Layout(
        format_version=FORMAT_VERSION, sha256=hashlib.sha256(module).hexdigest(),
        batch_size=config.training.train_batch_size,
        num_train_steps=config.training.num_train_steps,
        batch=tuple(Value(name=part.name, shape=tuple(part.shape), dtype=part.dtype.name)
                    for part in spec),
        state=_state_values(_captured(concrete, state), dialect.updates(text), len(spec)),
        results=tuple(f"{name}/{part}" for name in sorted(concrete.structured_outputs)
                      for part in ("sum", "weight")),
        reading=reading))


def lift_without_records(config: PretrainingConfig) -> LiftedStep:
    """Lifts the step of settings of any size; vocabulary and counts are stand-ins.

    Args:
        config: where a vocabulary would change `model.vocab_size`, it has to be set.

    Raises:
        UserError: the length is past the model's positions, or the vocabulary has no room.
    """
    config = for_one_device(config)
    length = config.data.max_seq_length or min(LONGEST, config.model.max_position_embeddings)
    if length > config.model.max_position_embeddings:
        raise UserError(f"data.max_seq_length={length}, but the model has "
                        f"model.max_position_embeddings={config.model.max_position_embeddings}.")
    config = override(config, {"data.max_seq_length": length})
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    objective = build_objective(config, _given(config))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    return lift(config, objective, build_state(config, model, strategy), strategy)


def state_name(variable: tf.Variable) -> str:
    """Returns the name of a variable of the state in layouts."""
    return variable.name.split(":")[0]


def _captured(concrete: tf.types.experimental.ConcreteFunction,
              state: TrainState) -> list[tf.Variable]:
    """Returns the variables that a traced step uses, in the order of its parameters."""
    by_handle = {id(variable.handle): variable for variable in state.variables}
    return [by_handle[id(handle)] for handle in concrete.captured_inputs]


def _state_values(variables: Sequence[tf.Variable], updates: dict[int, int],
                  first: int) -> tuple[StateValue, ...]:
    names = [state_name(variable) for variable in variables]
    if len(set(names)) < len(names) or STEP not in names:
        raise ValueError(f"the state needs a {STEP} and names that differ. Received: {names}")
    return tuple(
        StateValue(name=name, shape=tuple(variable.shape), dtype=variable.dtype.name,
                   result=updates.get(first + index))
        for index, (name, variable) in enumerate(zip(names, variables, strict=True)))


def _given(config: PretrainingConfig) -> Given:
    size = config.model.vocab_size
    special = SpecialTokens(pad=0, cls=2, sep=3, mask=4)
    if size <= max(special):
        raise UserError(f"model.vocab_size={size} is too small for a vocabulary.")
    generator = GivenGenerator(
        source="a generator of this size", model=config.model,
        weights={path: np.zeros(shape, np.float32)
                 for path, shape in weight_table.generator(config.model).weights.items()})
    return Given(kinds=TokenKinds(special, size, np.zeros(size, bool)), generator=generator,
                 token_counts=lambda: np.ones(size, np.int64))
