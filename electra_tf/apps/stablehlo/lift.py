"""The training step as a pure function in StableHLO: (batch, state) -> (results, new state).

The same step that `run_pretraining.py` runs, for one replica with the whole batch. A compiler
splits the batch over devices, which changes no draw: every draw is a function of the example's
index in the global batch.
"""

import hashlib
from collections.abc import Sequence

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
from electra_tf.modeling import fused
from electra_tf.objectives.objective import Objective
from electra_tf.training.assembly import build_step
from electra_tf.training.step import TrainState


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
