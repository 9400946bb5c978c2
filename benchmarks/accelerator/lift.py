"""Lifts the training step to a pure function in StableHLO: (batch, state) -> (results, state).

It is the step of `run_pretraining.py` for one replica with the whole batch. A compiler splits the
batch over devices, which changes no draw: every draw is a function of the example's index in the
global batch.
"""

import hashlib
import re

import numpy as np
import tensorflow as tf
from tensorflow.compiler.mlir.stablehlo import stablehlo

from benchmarks.accelerator.lifted_step import LiftedStep, StepArgument, StepLayout
from electra_tf.config.objectives import objective_class
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import Precision, PretrainingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import fused, network_specs, weight_table
from electra_tf.modeling.masking import SpecialTokens
from electra_tf.objectives.objective import Objective
from electra_tf.objectives.pretraining import ObjectiveContext, TrainedGenerator
from electra_tf.platform.errors import UserError
from electra_tf.training.devices import build_model, build_state, build_step
from electra_tf.training.step import TrainState

_MODULE = re.compile(r"(?m)^module @\S+(?: attributes (?P<attributes>\{.*\}))? \{$")
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64: (\d+)>")
_REWRITES = tuple((re.compile(pattern), replacement) for pattern, replacement in (
    # Source locations in Python: half of the text, different on every machine.
    (r"(?m)^#loc.*\n", ""),
    (r' loc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"(?:[^"\\]|\\.)*")*\))*\)', ""),
    (_MODULE.pattern, "module @step {"),
    (r" \{mhlo\.frontend_attributes = \{[^{}]*\}\}", ""),  # Hints.
    # A copy only affects memory. The error function is called as JAX's exports call it.
    (r"= mhlo\.copy (%\S+) : (\S+)", r"= stablehlo.reshape \1 : (\2) -> \2"),
    (r"= mhlo\.erf (%\S+) : (\S+)",
     r"= stablehlo.custom_call @mhlo.erf(\1) {mhlo.attributes = {}, mhlo.version = 1 : i64} : "
     r"(\2) -> \2")))
"""Rewriting of TensorFlow's module into StableHLO alone, without XLA's own dialect `mhlo`."""


def lift_without_records(config: PretrainingConfig) -> LiftedStep:
    """Lifts the step of a run's settings; vocabulary and token counts are placeholders.

    Precision auto becomes bfloat16, which every TPU multiplies. `data.max_seq_length` and
    `model.vocab_size` must have their final values. A length beyond the model's positions and a
    vocabulary without room for the special tokens are refused with a `UserError`.
    """
    length, positions = config.data.max_seq_length, config.model.max_position_embeddings
    if length > positions:
        raise UserError(f"data.max_seq_length={length}, but the model has "
                        f"model.max_position_embeddings={positions}.")
    vocab_size, special = config.model.vocab_size, SpecialTokens(pad=0, cls=2, sep=3, mask=4)
    if vocab_size <= max(special):
        raise UserError(f"model.vocab_size={vocab_size} is too small for a vocabulary.")
    precision = config.training.precision
    config = override(config, {
        "runtime.distribution_strategy": "one_device", "runtime.num_gpus": 0, "runtime.tpu": "",
        "runtime.cpu_parts": 1, "runtime.xla": "off", "training.precision":
            Precision.BFLOAT16 if precision is Precision.AUTO else precision})
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    encoder = config.model.generator
    shapes = network_specs.language_model(
        "generator", encoder, weight_table.full_encoder(encoder)).weights
    objective = objective_class(config.objective.name)(config, ObjectiveContext.placeholder(
        vocab_size, special, TrainedGenerator(encoder, {
            path: np.zeros(shape, np.float32) for path, shape in shapes.items()})))
    model = build_model(objective, config, strategy, seed=config.training.seed)
    return lift(config, objective, build_state(config, model, strategy), strategy)


def lift(config: PretrainingConfig, objective: Objective, state: TrainState,
         strategy: tf.distribute.Strategy) -> LiftedStep:
    """Traces a step of one replica on a CPU and writes it as StableHLO.

    `state` supplies shapes; its values are not read. A step with an op that StableHLO lacks is
    refused with a `UserError`.
    """
    shape = [config.training.train_batch_size, config.data.max_seq_length]
    batch = Batch(ids=tf.TensorSpec(shape, tf.int32, "ids"),
                  valid=tf.TensorSpec(shape, tf.bool, "valid"),
                  segment_ids=tf.TensorSpec(shape, tf.int32, "segment_ids"))
    step = build_step(config, objective, state, strategy, config.training.num_train_steps)
    with fused.whole_program_compilation():
        function = tf.function(lambda *parts: strategy.run(step, args=(Batch(*parts),)),
                               jit_compile=True, autograph=False)
        concrete = function.get_concrete_function(*batch)
        text = function.experimental_get_compiler_ir(*batch)(
            stage="stablehlo", platform_name="CPU")
    module = portable(text)
    # In TensorFlow's module the value of a resource variable is a parameter.
    aliases = _ALIAS.findall(_MODULE.search(text)["attributes"] or "")
    new_values = {int(parameter): int(result) for parameter, result in aliases}
    variable_of_handle = {id(variable.handle): variable for variable in state.variables}
    variables = [variable_of_handle[id(handle)] for handle in concrete.captured_inputs]
    return LiftedStep(module=module, layout=StepLayout(
        sha256=hashlib.sha256(module).hexdigest(),
        batch=tuple(StepArgument(name=part.name, shape=tuple(part.shape), dtype=part.dtype.name)
                    for part in batch),
        state=tuple(StepArgument(name=variable.name.removesuffix(":0"), shape=tuple(variable.shape),
                             dtype=variable.dtype.name, result=new_values.get(index))
                    for index, variable in enumerate(variables, start=len(batch))),
        results=tuple(f"{name}/{part}" for name in sorted(concrete.structured_outputs)
                      for part in ("sum", "weight"))))


def portable(module: str) -> bytes:
    """Returns TensorFlow's module in StableHLO's portable form, which later versions read."""
    for pattern, replacement in _REWRITES:
        module = pattern.sub(replacement, module)
    if match := re.search(r'= "?((?:mhlo|chlo)\.\w+)', module):
        raise UserError(f"the step has the op {match[1]}, which StableHLO doesn't have, so it "
                        "can't be written for other compilers.")
    return stablehlo.serialize_portable_artifact_str(module, stablehlo.get_current_version())
